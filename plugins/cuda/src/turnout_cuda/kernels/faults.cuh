// What a kernel does that finds an index out of range: the first one is written to the record of the device, which the host reads
// (`turnout_cuda.faults`). Its first word is the number of the call, or 0 as long as nothing was found.
__device__ inline void report(whole record, whole call, whole at, whole length) {
    word64* words = (word64*)record;
    if (atomicCAS(words, (word64)0, (word64)call) == 0) {
        words[1] = (word64)at;
        words[2] = (word64)length;
    }
}
