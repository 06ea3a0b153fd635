/* The wall clock of a process, set ahead or back by the seconds in the file that HISTORY_CLOCK
 * names: eight bytes, read at each call. Clocks that only grow are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step;

__attribute__((constructor)) void follow_clock(void) {
  const char *name = getenv("HISTORY_CLOCK");
  int fd = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void *seen = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
  if (seen != MAP_FAILED) step = seen;
  close(fd);
}

static time_t ahead(void) { return step == NULL ? 0 : (time_t)*step; }

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = ((__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime"))(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += ahead();
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int result = ((__typeof__(&gettimeofday))dlsym(RTLD_NEXT, "gettimeofday"))(now, zone);
  now->tv_sec += ahead();
  return result;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
