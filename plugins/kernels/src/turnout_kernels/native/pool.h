/* Threads. `run_parts` calls a kernel for every part, on as many threads as are asked for, and returns when all are done.

   Threads take the next part that nobody has taken. A thread that finds the pool in use by another call does its parts alone, so
   calls from several threads cannot wait for each other. A child process starts with no threads. Without POSIX threads
   (Windows) every call is done by the caller. */
#ifndef TURNOUT_POOL_H
#define TURNOUT_POOL_H

#include "job.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <stdatomic.h>

#define MAX_THREADS 64

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    kernel *fn;
    const job *work;
    atomic_long next;
    long round, helpers, running, threads;
    int busy, registered;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void take_parts(kernel *fn, const job *work)
{
    for (long part; (part = atomic_fetch_add(&pool.next, 1)) < work->parts;)
        fn(work, part);
}

static void *help(void *unused)
{
    long seen = 0;
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.round == seen || !pool.helpers) {
            seen = pool.round;
            pthread_cond_wait(&pool.wake, &pool.lock);
        }
        seen = pool.round;
        pool.helpers--;
        kernel *fn = pool.fn;
        const job *work = pool.work;
        pthread_mutex_unlock(&pool.lock);
        take_parts(fn, work);
        pthread_mutex_lock(&pool.lock);
        if (--pool.running == 0)
            pthread_cond_signal(&pool.done);
    }
    return NULL;
}

static void forget_threads(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.threads = pool.helpers = pool.running = pool.busy = 0;
}

static void run_parts(kernel *fn, const job *work, long threads)
{
    if (threads > work->parts)
        threads = (long)work->parts;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > 1) {
        pthread_mutex_lock(&pool.lock);
        if (!pool.busy) {
            pool.busy = 1;
            if (!pool.registered)
                pool.registered = pthread_atfork(NULL, NULL, forget_threads) == 0;
            while (pool.threads < threads - 1) {
                pthread_t made;
                if (pthread_create(&made, NULL, help, NULL))
                    break;
                pthread_detach(made);
                pool.threads++;
            }
            pool.fn = fn;
            pool.work = work;
            atomic_store(&pool.next, 0);
            pool.helpers = pool.running = pool.threads < threads - 1 ? pool.threads : threads - 1;
            pool.round++;
            pthread_cond_broadcast(&pool.wake);
            pthread_mutex_unlock(&pool.lock);
            take_parts(fn, work);
            pthread_mutex_lock(&pool.lock);
            /* Helpers that have not woken up are not waited for: there is nothing left to do. */
            pool.running -= pool.helpers;
            pool.helpers = 0;
            while (pool.running)
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
