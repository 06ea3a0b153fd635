/* Counts what a process does to the files below a folder, and kills it at the n-th such call.
 *
 * Loaded before all others (LD_PRELOAD), so that the calls of SQLite, of the vector index and of
 * Python are all seen. `crash_arm` begins to count; what is given to `crash_tell` hears of each call
 * that a thread of Python makes, within that call. Four ways to die at a call:
 *   0  before it;
 *   1  in the middle of it: a write leaves its first half;
 *   2  with the power: of all files what was written and not synced is undone (renames, new names
 *      and removals stay, in the order in which a file system with a journal may keep them);
 *   3  with the power, too late for half of it: some pages and lengths that were not synced were
 *      written all the same, and of a file that only got its length the pages are zeros.
 * Writes through shared memory (SQLite's `-shm`, maps of the vector index) are no calls; `msync` is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096

struct undo {
  struct undo *before;
  int fd;
  dev_t dev;
  ino_t ino;
  off_t size, at;
  size_t length;
  char *bytes;
};

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char root[PATH_MAX], where[PATH_MAX];
static const char *called;
static long long target, seen;
static void (*tell)(long long number, const char *call, const char *path, size_t size);
void *PyGILState_GetThisThreadState(void) __attribute__((weak));
static int way, armed;
static struct undo *undone;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

void crash_arm(const char *folder, long long n, int how) {
  if (realpath(folder, root) == NULL) abort();
  target = n;
  way = how;
  seen = 0;
  armed = 1;
}

long long crash_count(void) { return seen; }

void crash_tell(void (*listener)(long long, const char *, const char *, size_t)) {
  tell = listener;
}

static int below(const char *path) {
  size_t length = strlen(root);
  snprintf(where, sizeof where, "%.4000s", path);
  return strncmp(path, root, length) == 0 && path[length] == '/';
}

static int ours(int fd) {
  char link[64], path[PATH_MAX];
  if (!armed) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return below(path) && strstr(path, "-shm") == NULL;
}

static int ours_at(int folder, const char *path) {
  char full[2 * PATH_MAX], parent[PATH_MAX];
  if (!armed) return 0;
  if (path[0] == '/') return below(path);
  if (folder != AT_FDCWD) return ours(folder);
  if (getcwd(parent, sizeof parent) == NULL) return 0;
  snprintf(full, sizeof full, "%s/%.4000s", parent, path);
  return below(full);
}

/* Whether a page of a file (its length: page -1) was written without being synced. */
static int survives(const struct undo *of, off_t page) {
  if (way != 3) return 0;
  const struct undo *first = of; /* of its file: what is still there the same way in each run */
  unsigned long long dice = (unsigned long long)target * 0x9E3779B97F4A7C15ULL + (page + 2);
  for (const struct undo *each = of; each != NULL; each = each->before)
    if (each->dev == of->dev && each->ino == of->ino) first = each;
  for (const struct undo *each = first->before; each != NULL; each = each->before) dice += 77777;
  dice = (dice ^ dice >> 30) * 0xBF58476D1CE4E5B9ULL;
  dice = (dice ^ dice >> 27) * 0x94D049BB133111EBULL;
  return dice >> 63;
}

static void put(const struct undo *of, const char *bytes, off_t from, off_t to) {
  if (to > from && REAL(pwrite64)(of->fd, bytes, to - from, from) != to - from) abort();
}

static void restore(void) {
  static const char zeros[PAGE];
  struct stat now;
  for (struct undo *each = undone; each != NULL; each = each->before) {
    if (fstat(each->fd, &now) < 0) abort();
    off_t end = each->at + (off_t)each->length;
    for (off_t from = each->at, to; from < end; from = to) {
      to = (from / PAGE + 1) * PAGE < end ? (from / PAGE + 1) * PAGE : end;
      if (!survives(each, from / PAGE)) put(each, each->bytes + (from - each->at), from, to);
    }
    if (!survives(each, -1)) {
      if (REAL(ftruncate64)(each->fd, each->size) < 0) abort();
      continue;
    }
    for (off_t from = each->size, to; from < now.st_size; from = to) {
      to = (from / PAGE + 1) * PAGE < now.st_size ? (from / PAGE + 1) * PAGE : now.st_size;
      if (!survives(each, from / PAGE)) put(each, zeros, from, to);
    }
    if (REAL(ftruncate64)(each->fd, now.st_size) < 0) abort();
  }
}

/* Count a call; die where it is the one, after `half` of a write was made. */
static void point(int fd, const void *bytes, size_t half, off_t at) {
  seen++;
  if (tell != NULL && PyGILState_GetThisThreadState() != NULL) {
    long long number = seen;
    const char *call = called;
    char path[PATH_MAX];
    strcpy(path, where);
    pthread_mutex_unlock(&lock); /* who hears it may wait for a thread that waits for this lock */
    tell(number, call, path, half);
    pthread_mutex_lock(&lock);
  }
  if (seen != target) return;
  if (way == 1 && bytes != NULL && half > 0) {
    if (at < 0) at = lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    if (REAL(pwrite64)(fd, bytes, half, at) < 0) abort();
  }
  if (way >= 2) restore();
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

void crash_now(void) {
  pthread_mutex_lock(&lock);
  restore();
  kill(getpid(), SIGKILL);
}

/* Remember what a write or a cut is about to change, for the way without power. */
static void remember(int fd, off_t at, size_t length, int cuts) {
  struct stat now;
  if (way < 2 || fstat(fd, &now) < 0 || !S_ISREG(now.st_mode)) return;
  if (at < 0) at = lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
  if (cuts) length = now.st_size > at ? (size_t)(now.st_size - at) : 0;
  if (at + (off_t)length > now.st_size) length = at < now.st_size ? (size_t)(now.st_size - at) : 0;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  struct undo *each = malloc(sizeof *each);
  *each = (struct undo){undone, open(path, O_RDWR | O_CLOEXEC), now.st_dev, now.st_ino,
                        now.st_size, at, length, length ? malloc(length) : NULL};
  if (each->fd < 0) abort();
  if (length && pread64(each->fd, each->bytes, length, at) != (ssize_t)length) abort();
  undone = each;
}

static void synced(int fd) {
  struct stat now;
  if (way < 2 || fstat(fd, &now) < 0) return;
  for (struct undo **each = &undone; *each != NULL;) {
    struct undo *one = *each;
    if (one->dev == now.st_dev && one->ino == now.st_ino) {
      *each = one->before;
      close(one->fd);
      free(one->bytes);
      free(one);
    } else {
      each = &one->before;
    }
  }
}

#define GUARDED(call, is_ours, before, after)  \
  pthread_mutex_lock(&lock);                   \
  where[0] = 0;                                \
  called = __func__;                           \
  int mine = is_ours;                          \
  if (mine) { before; }                        \
  __typeof__(call) result = call;              \
  if (mine) { after; }                         \
  pthread_mutex_unlock(&lock);                 \
  return result

static void writing(int fd, const void *bytes, size_t n, off_t at) {
  point(fd, bytes, n / 2, at);
  remember(fd, at, n, 0);
}

ssize_t write(int fd, const void *bytes, size_t n) {
  GUARDED(REAL(write)(fd, bytes, n), ours(fd), writing(fd, bytes, n, -1), );
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
  GUARDED(REAL(pwrite64)(fd, bytes, n, at), ours(fd), writing(fd, bytes, n, at), );
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
  GUARDED(REAL(pwrite64)(fd, bytes, n, at), ours(fd), writing(fd, bytes, n, at), );
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  size_t n = 0;
  for (int i = 0; i < count; i++) n += parts[i].iov_len;
  GUARDED(REAL(writev)(fd, parts, count), ours(fd),
          point(fd, parts[0].iov_base, parts[0].iov_len / 2, -1); remember(fd, -1, n, 0), );
}

int ftruncate64(int fd, off64_t size) {
  GUARDED(REAL(ftruncate64)(fd, size), ours(fd), point(fd, NULL, 0, 0); remember(fd, size, 0, 1), );
}

int ftruncate(int fd, off_t size) {
  GUARDED(REAL(ftruncate64)(fd, size), ours(fd), point(fd, NULL, 0, 0); remember(fd, size, 0, 1), );
}

int fsync(int fd) { GUARDED(REAL(fsync)(fd), ours(fd), point(fd, NULL, 0, 0), synced(fd)); }

int fdatasync(int fd) { GUARDED(REAL(fdatasync)(fd), ours(fd), point(fd, NULL, 0, 0), synced(fd)); }

int msync(void *start, size_t length, int flags) {
  GUARDED(REAL(msync)(start, length, flags), armed, point(-1, NULL, 0, 0), );
}

int rename(const char *from, const char *to) {
  GUARDED(REAL(rename)(from, to), ours_at(AT_FDCWD, to), point(-1, NULL, 0, 0), );
}

int renameat(int of, const char *from, int in, const char *to) {
  GUARDED(REAL(renameat)(of, from, in, to), ours_at(in, to), point(-1, NULL, 0, 0), );
}

int unlink(const char *path) {
  GUARDED(REAL(unlink)(path), ours_at(AT_FDCWD, path), point(-1, NULL, 0, 0), );
}

int unlinkat(int folder, const char *path, int flags) {
  GUARDED(REAL(unlinkat)(folder, path, flags), ours_at(folder, path), point(-1, NULL, 0, 0), );
}

int rmdir(const char *path) {
  GUARDED(REAL(rmdir)(path), ours_at(AT_FDCWD, path), point(-1, NULL, 0, 0), );
}

int link(const char *from, const char *to) {
  GUARDED(REAL(link)(from, to), ours_at(AT_FDCWD, to), point(-1, NULL, 0, 0), );
}

int linkat(int of, const char *from, int in, const char *to, int flags) {
  GUARDED(REAL(linkat)(of, from, in, to, flags), ours_at(in, to), point(-1, NULL, 0, 0), );
}

int mkdir(const char *path, mode_t mode) {
  GUARDED(REAL(mkdir)(path, mode), ours_at(AT_FDCWD, path), point(-1, NULL, 0, 0), );
}
