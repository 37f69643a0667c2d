/* Threads. `run_parts` calls a kernel for every part, on as many threads as are asked for, and returns when all are done.

   Threads take the next part that nobody has taken. A thread that finds the pool in use by another call does its parts alone, so
   calls from several threads cannot wait for each other. A child process starts with no threads. Without POSIX threads
   (Windows) every call is done by the caller.

   A thread that has nothing to do looks for work for SPIN_NS before it sleeps, and a caller whose last part is with another thread
   looks that long for its end: with threads that sleep at once, a sum of 4 million numbers took as long on two as on one. A caller
   sends helpers that sleep to other processors before it wakes them. A helper that finds itself on the caller's processor all the
   same moves to another one, and never looks for work there. */
#ifndef TURNOUT_POOL_H
#define TURNOUT_POOL_H

#include "job.h"

#ifdef __linux__
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MAX_THREADS 64
#define SPIN_NS 200000

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    kernel *fn;
    const job *work;
    atomic_long next, posted, running; /* `posted` is `round`, once the lock is free again */
    long round, helpers, threads;
    atomic_int place, unknown; /* the caller's processor when it posted the work; whether the system does not tell processors apart */
    int busy, registered;
    pthread_t helper[MAX_THREADS];
    int asleep[MAX_THREADS], barred[MAX_THREADS]; /* of the helpers; a processor that one may not wake up on, plus 1 */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The processor on which this thread is; -1 if that is not known. */
static int processor(void)
{
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

static int beside_caller(void)
{
    int here = atomic_load_explicit(&pool.unknown, memory_order_relaxed) ? -1 : processor();
    return here >= 0 && here == atomic_load_explicit(&pool.place, memory_order_relaxed);
}

/* Moves a helper off the caller's processor, to any other that it may use. Where the others have work, the system wakes a thread on
   the processor of the one that wakes it, and leaves it there for many milliseconds: the two then take turns, and are slower than
   one. On another processor, even a busy one, a helper has its share of time, and what it does not get done is the caller's. */
static void move_away(void)
{
#ifdef __linux__
    cpu_set_t allowed, others;
    if (!beside_caller() || sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    others = allowed;
    CPU_CLR((unsigned)processor(), &others);
    if (!CPU_COUNT(&others) || sched_setaffinity(0, sizeof others, &others))
        return;
    if (beside_caller()) /* an emulation that gives every thread one number: it would be asked again in every call */
        atomic_store(&pool.unknown, 1);
    sched_setaffinity(0, sizeof allowed, &allowed);
#endif
}

#ifdef __linux__
/* Keeps helpers that sleep off the caller's processor, with the lock held. A virtual machine that takes idle processors for busy ones
   wakes a thread on that of the one that wakes it, behind the caller: 1 to 3 ms passed until it ran. */
static void send_away(int place)
{
    for (long i = 0; place >= 0 && i < pool.threads; i++) {
        cpu_set_t allowed;
        if (!pool.asleep[i] || pool.barred[i] == place + 1 || pthread_getaffinity_np(pool.helper[i], sizeof allowed, &allowed))
            continue;
        if (pool.barred[i])
            CPU_SET((unsigned)pool.barred[i] - 1, &allowed);
        if (!CPU_ISSET((unsigned)place, &allowed) || CPU_COUNT(&allowed) < 2)
            continue;
        CPU_CLR((unsigned)place, &allowed);
        if (!pthread_setaffinity_np(pool.helper[i], sizeof allowed, &allowed))
            pool.barred[i] = place + 1;
    }
}

/* Lets a helper that is awake run anywhere again, with the lock held. */
static void admit(long i)
{
    cpu_set_t allowed;
    if (pool.barred[i] && !sched_getaffinity(0, sizeof allowed, &allowed)) {
        CPU_SET((unsigned)pool.barred[i] - 1, &allowed);
        sched_setaffinity(0, sizeof allowed, &allowed);
    }
    pool.barred[i] = 0;
}
#else
static void send_away(int place) { (void)place; }
static void admit(long i) { (void)i; }
#endif

/* Looks until a number is that one, or is not, but no longer than SPIN_NS. */
static void look(atomic_long *number, long value, int equal)
{
    struct timespec now;
    int64_t end = 0;
    for (;;) {
        for (int k = 0; k < 64; k++) {
            if ((atomic_load_explicit(number, memory_order_acquire) == value) == equal)
                return;
            relax();
        }
        if (clock_gettime(CLOCK_MONOTONIC, &now))
            return;
        int64_t time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        if (!end)
            end = time + SPIN_NS;
        else if (time > end)
            return;
    }
}

/* The lock is held for a few instructions: whoever finds it taken sleeps only if that lasts. */
static void take_lock(void)
{
    for (int k = 0; k < 200; k++) {
        if (!pthread_mutex_trylock(&pool.lock))
            return;
        relax();
    }
    pthread_mutex_lock(&pool.lock);
}

static void take_parts(kernel *fn, const job *work)
{
    for (long part; (part = atomic_fetch_add(&pool.next, 1)) < work->parts;)
        fn(work, part);
}

static void *help(void *number)
{
    long seen = 0, me = (long)(intptr_t)number;
    take_lock();
    for (;;) {
        if (pool.round == seen || !pool.helpers) {
            seen = pool.round;
            pthread_mutex_unlock(&pool.lock);
            if (!beside_caller())
                look(&pool.posted, seen, 0);
            take_lock();
            while (pool.round == seen) {
                pool.asleep[me] = 1;
                pthread_cond_wait(&pool.wake, &pool.lock);
                pool.asleep[me] = 0;
            }
            admit(me);
            continue;
        }
        seen = pool.round;
        pool.helpers--;
        kernel *fn = pool.fn;
        const job *work = pool.work;
        pthread_mutex_unlock(&pool.lock);
        move_away();
        take_parts(fn, work);
        take_lock();
        if (atomic_fetch_sub(&pool.running, 1) == 1)
            pthread_cond_signal(&pool.done);
    }
    return NULL;
}

static void forget_threads(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.threads = pool.helpers = pool.busy = 0;
    memset(pool.asleep, 0, sizeof pool.asleep);
    memset(pool.barred, 0, sizeof pool.barred);
    atomic_store(&pool.running, 0);
}

static void run_parts(kernel *fn, const job *work, long threads)
{
    if (threads > work->parts)
        threads = (long)work->parts;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > 1) {
        take_lock();
        if (!pool.busy) {
            pool.busy = 1;
            if (!pool.registered)
                pool.registered = pthread_atfork(NULL, NULL, forget_threads) == 0;
            while (pool.threads < threads - 1) {
                if (pthread_create(&pool.helper[pool.threads], NULL, help, (void *)(intptr_t)pool.threads))
                    break;
                pthread_detach(pool.helper[pool.threads++]);
            }
            pool.fn = fn;
            pool.work = work;
            atomic_store(&pool.next, 0);
            pool.helpers = pool.threads < threads - 1 ? pool.threads : threads - 1;
            atomic_store(&pool.running, pool.helpers);
            long round = ++pool.round;
            int place = processor();
            atomic_store_explicit(&pool.place, place, memory_order_relaxed);
            send_away(place);
            pthread_cond_broadcast(&pool.wake);
            pthread_mutex_unlock(&pool.lock);
            atomic_store(&pool.posted, round);
            take_parts(fn, work);
            take_lock();
            /* Helpers that have not woken up are not waited for: there is nothing left to do. */
            atomic_fetch_sub(&pool.running, pool.helpers);
            pool.helpers = 0;
            if (atomic_load(&pool.running)) {
                pthread_mutex_unlock(&pool.lock);
                look(&pool.running, 0, 1);
                take_lock();
            }
            while (atomic_load(&pool.running))
                pthread_cond_wait(&pool.done, &pool.lock);
            pool.busy = 0;
            pthread_mutex_unlock(&pool.lock);
            return;
        }
        pthread_mutex_unlock(&pool.lock);
    }
    for (int64_t part = 0; part < work->parts; part++)
        fn(work, part);
}
#else
static void run_parts(kernel *fn, const job *work, long threads)
{
    (void)threads;
    for (int64_t part = 0; part < work->parts; part++)
        fn(work, part);
}
#endif
#endif
