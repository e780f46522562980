/* A fake libnvidia-ml.so.1 with the real C ABI: what nvidia-ml-py calls, for tests without GPUs.

   $FAKE_NVML names a file that every process maps, so that all see the same clocks and meters.
   Beside it lie FILE.conf, what the GPUs are and which calls fail, read again when it changes, and
   FILE.log, a line for each call that set something. Compiled with -DFAKE_JOB it is a program that
   keeps GPUs busy for as long as their clocks make it last:

       fake-job APPLICATION [SCALE [GPU,GPU...]]      (by default the GPUs of CUDA_VISIBLE_DEVICES)

   Lines of FILE.conf (clocks in MHz, watts, seconds; the first memory clock is the default one):

       gpus 4
       core 210 1410 15                   lowest, highest, step
       memory 1215 810
       limit 100 400                      least, and greatest power limit, which is the default
       idle 45
       app train 60 30 200 2.0 0.8 0.1 0.5 0 0.5      p0 gamma c, d delta t0, a0 a1 a2
       fail nvmlDeviceSetGpuLockedClocks 4 2          function or *, code, of this GPU (or of all)
       delay nvmlInitWithFlags 2000                   milliseconds

   With f and m the clocks over the highest: power = p0 + gamma m + c v^2 f at the voltage
   v = a0 + a1 f + a2 f^2, time = d (delta / f + (1 - delta) / m) + t0. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_FOUND = 6, TOO_SMALL = 7, UNKNOWN = 999 };
enum { GPUS = 64, APPS = 64, FAILURES = 32, CLOCKS = 16, MAGIC = 0xD0C1 };

typedef struct { /* as nvml.py reads it */
    uint32_t low, high, memory_low, memory_high, cap_mw;
    int32_t runner;
    uint32_t app, unused;
    double energy_mj, since_s, until_s; /* it works until then, whatever its process does */
} Gpu;
typedef struct { uint32_t magic, unused; Gpu gpu[GPUS]; } State;
typedef struct { char name[64]; double p0, gamma, c, d, delta, t0, a0, a1, a2; } App;
typedef struct { char function[64]; int code, gpu, delay_ms; } Failure;
typedef struct {
    unsigned gpus, core_low, core_high, core_step, memory[CLOCKS], memories, apps, failures;
    double least_w, most_w, idle_w;
    App app[APPS];
    Failure failure[FAILURES];
} Config;

static State *state;
static Config config;
static char path[4000];
static int file = -1, users;
static struct timespec read_at;
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void pause_s(double s) {
    struct timespec t = {(time_t)s, (long)((s - (time_t)s) * 1e9)};
    nanosleep(&t, NULL);
}

static void read_line(char *line, Config *c) {
    App a = {0};
    Failure f = {.gpu = -1};
    unsigned *m = c->memory;
    sscanf(line, "gpus %u", &c->gpus);
    sscanf(line, "core %u %u %u", &c->core_low, &c->core_high, &c->core_step);
    sscanf(line, "limit %lf %lf", &c->least_w, &c->most_w);
    sscanf(line, "idle %lf", &c->idle_w);
    int n = sscanf(line, "memory %u %u %u %u", m, m + 1, m + 2, m + 3);
    if (n > 0) c->memories = n;
    if (sscanf(line, "app %63s %lf %lf %lf %lf %lf %lf %lf %lf %lf", a.name, &a.p0, &a.gamma, &a.c,
               &a.d, &a.delta, &a.t0, &a.a0, &a.a1, &a.a2) == 10 && c->apps < APPS)
        c->app[c->apps++] = a;
    if ((sscanf(line, "fail %63s %d %d", f.function, &f.code, &f.gpu) >= 2 ||
         sscanf(line, "delay %63s %d", f.function, &f.delay_ms) == 2) && c->failures < FAILURES)
        c->failure[c->failures++] = f;
}

static void read_config(void) {
    char name[4096], line[512];
    struct stat at;
    snprintf(name, sizeof name, "%s.conf", path);
    if (stat(name, &at) == 0 && !memcmp(&at.st_mtim, &read_at, sizeof read_at)) return;
    Config c = {.gpus = 4, .core_low = 210, .core_high = 1410, .core_step = 15, .memory = {1215},
                .memories = 1, .least_w = 100, .most_w = 400, .idle_w = 45, .apps = 1,
                .app = {{"any", 60, 30, 200, 2, 0.8, 0.1, 0.5, 0, 0.5}}};
    FILE *in = fopen(name, "r");
    if (in) {
        while (fgets(line, sizeof line, in)) read_line(line, &c);
        fclose(in);
        read_at = at.st_mtim;
    }
    config = c;
}

static unsigned memory_of(Gpu *g) { return g->memory_high ? g->memory_high : config.memory[0]; }

static double busy_w(App *a, unsigned core, unsigned memory) {
    double f = (double)core / config.core_high, v = a->a0 + a->a1 * f + a->a2 * f * f;
    return a->p0 + a->gamma * memory / config.memory[0] + a->c * v * v * f;
}

static unsigned core_of(Gpu *g) {
    unsigned core = g->runner ? config.core_high : config.core_low;
    if (g->high && core > g->high) core = g->high;
    if (core < g->low) core = g->low;
    while (g->runner && core >= config.core_low + config.core_step &&
           1e3 * busy_w(&config.app[g->app % config.apps], core, memory_of(g)) > g->cap_mw)
        core -= config.core_step;
    return core;
}

static double power_mw(Gpu *g) {
    return 1e3 * (g->runner ? busy_w(&config.app[g->app % config.apps], core_of(g), memory_of(g))
                            : config.idle_w);
}

static void draw(Gpu *g, double until_s) {
    if (until_s <= g->since_s) return;
    g->energy_mj += power_mw(g) * (until_s - g->since_s);
    g->since_s = until_s;
}

static void settle(Gpu *g) {
    double t = now_s();
    if (g->runner && g->until_s < t) draw(g, g->until_s), g->runner = 0;
    draw(g, t);
    if (g->runner && kill(g->runner, 0) != 0 && errno == ESRCH) g->runner = 0;
}

/* Locks of files go with the process that held them, however it ends. */
static void enter(void) { pthread_mutex_lock(&threads); flock(file, LOCK_EX); read_config(); }
static int leave(int code) { flock(file, LOCK_UN); pthread_mutex_unlock(&threads); return code; }

static int failure(const char *function, int gpu) {
    for (unsigned k = 0; k < config.failures; k++) {
        Failure f = config.failure[k];
        if (strcmp(f.function, "*") && strcmp(f.function, function)) continue;
        if (f.gpu >= 0 && f.gpu != gpu) continue;
        if (f.code) return f.code;
        leave(0); /* others need not wait for this call */
        pause_s(f.delay_ms / 1e3);
        enter();
    }
    return OK;
}

static void note(const char *function, Gpu *g, unsigned low, unsigned high) {
    char name[4096], line[256];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(name, sizeof name, "%s.log", path);
    int out = open(name, O_WRONLY | O_CREAT | O_APPEND, 0666);
    int n = snprintf(line, sizeof line, "%ld.%06ld %d %s %u %u\n", (long)t.tv_sec, t.tv_nsec / 1000,
                     (int)(g - state->gpu), function, low, high);
    if (out < 0 || write(out, line, n) != n) perror(name);
    if (out >= 0) close(out);
}

static int begin(void) {
    const char *named = getenv("FAKE_NVML");
    if (users++) return OK;
    if (!named || strlen(named) >= sizeof path) return UNKNOWN;
    strcpy(path, named);
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, sizeof(State))) return UNKNOWN;
    fchmod(file, 0666); /* for every user, whatever the first one's umask is */
    state = mmap(NULL, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (state == MAP_FAILED) return UNKNOWN;
    enter();
    for (int k = 0; k < GPUS && state->magic != MAGIC; k++)
        state->gpu[k] = (Gpu){.cap_mw = 1000 * config.most_w, .since_s = now_s()};
    state->magic = MAGIC;
    return leave(OK);
}

#define CALL(gpu) \
    if (!users) return UNINITIALIZED; \
    enter(); \
    int failed = failure(__func__, gpu); \
    if (failed) return leave(failed);
#define DEVICE \
    int index = (int)(intptr_t)handle - 1; \
    CALL(index) \
    if (index < 0 || index >= (int)config.gpus) return leave(INVALID); \
    Gpu *g = &state->gpu[index]; \
    settle(g);

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int code = begin();
    if (code) return users = 0, code;
    CALL(-1)
    return leave(OK);
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return users ? (users--, OK) : UNINITIALIZED; }
const char *nvmlErrorString(int code) {
    static char text[32];
    snprintf(text, sizeof text, "fake error %d", code);
    return code ? text : "Success";
}
int nvmlSystemGetDriverVersion(char *text, unsigned n) {
    CALL(-1)
    snprintf(text, n, "580.00.fake");
    return leave(OK);
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    CALL(-1)
    *count = config.gpus;
    return leave(OK);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned which, void **handle) {
    CALL((int)which)
    *handle = (void *)(intptr_t)(which + 1);
    return leave(which < config.gpus ? OK : INVALID);
}
int nvmlDeviceGetName(void *handle, char *text, unsigned n) {
    DEVICE
    snprintf(text, n, "Fake A100");
    return leave(OK);
}
int nvmlDeviceGetUUID(void *handle, char *text, unsigned n) {
    DEVICE
    snprintf(text, n, "GPU-fa4e0000-0000-0000-0000-%012d", index);
    return leave(OK);
}
int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor) {
    DEVICE
    *minor = index;
    return leave(OK);
}
int nvmlDeviceGetSupportedMemoryClocks(void *handle, unsigned *n, unsigned *clocks) {
    DEVICE
    int fits = clocks && *n >= config.memories;
    *n = config.memories;
    if (fits) memcpy(clocks, config.memory, *n * sizeof *clocks);
    return leave(fits ? OK : TOO_SMALL);
}
int nvmlDeviceGetSupportedGraphicsClocks(void *handle, unsigned memory, unsigned *n, unsigned *clocks) {
    DEVICE
    int known = 0;
    for (unsigned k = 0; k < config.memories; k++) known |= config.memory[k] == memory;
    if (!known) return leave(NOT_FOUND);
    unsigned count = (config.core_high - config.core_low) / config.core_step + 1;
    int fits = clocks && *n >= count;
    *n = count;
    for (unsigned k = 0; fits && k < count; k++) clocks[k] = config.core_high - k * config.core_step;
    return leave(fits ? OK : TOO_SMALL);
}
int nvmlDeviceSetGpuLockedClocks(void *handle, unsigned low, unsigned high) {
    DEVICE
    if (low > high || low < config.core_low || high > config.core_high) return leave(INVALID);
    g->low = low, g->high = high;
    return note(__func__, g, low, high), leave(OK);
}
int nvmlDeviceResetGpuLockedClocks(void *handle) {
    DEVICE
    g->low = g->high = 0;
    return note(__func__, g, 0, 0), leave(OK);
}
int nvmlDeviceSetMemoryLockedClocks(void *handle, unsigned low, unsigned high) {
    DEVICE
    if (low > high) return leave(INVALID);
    g->memory_low = low, g->memory_high = high;
    return note(__func__, g, low, high), leave(OK);
}
int nvmlDeviceResetMemoryLockedClocks(void *handle) {
    DEVICE
    g->memory_low = g->memory_high = 0;
    return note(__func__, g, 0, 0), leave(OK);
}
int nvmlDeviceGetClockInfo(void *handle, int which, unsigned *mhz) {
    DEVICE
    *mhz = which == 2 ? memory_of(g) : core_of(g);
    return leave(OK);
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *mw) {
    DEVICE
    *mw = power_mw(g);
    return leave(OK);
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *mj) {
    DEVICE
    *mj = g->energy_mj;
    return leave(OK);
}
int nvmlDeviceSetPowerManagementLimit(void *handle, unsigned mw) {
    DEVICE
    if (mw < 1000 * config.least_w || mw > 1000 * config.most_w) return leave(INVALID);
    g->cap_mw = mw;
    return note(__func__, g, mw, mw), leave(OK);
}
int nvmlDeviceGetPowerManagementLimit(void *handle, unsigned *mw) {
    DEVICE
    *mw = g->cap_mw;
    return leave(OK);
}
int nvmlDeviceGetPowerManagementDefaultLimit(void *handle, unsigned *mw) {
    DEVICE
    *mw = 1000 * config.most_w;
    return leave(OK);
}
int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *least, unsigned *most) {
    DEVICE
    *least = 1000 * config.least_w, *most = 1000 * config.most_w;
    return leave(OK);
}

#ifdef FAKE_JOB
static volatile sig_atomic_t stopped;
static void stop(int signal) { (void)signal; stopped = 1; }

static double time_s(Gpu *g, App *a) {
    double f = (double)core_of(g) / config.core_high, m = (double)memory_of(g) / config.memory[0];
    return a->d * (a->delta / f + (1 - a->delta) / m) + a->t0;
}

/* Say that these GPUs work for this process, or no longer; return how long all the work takes.
   They end what is left of it by themselves, however late a busy machine wakes the process. */
static double busy(int *gpus, int count, unsigned app, int runner, double scale, double left) {
    double longest = 0;
    enter();
    for (int k = 0; k < count; k++) {
        Gpu *g = &state->gpu[gpus[k]];
        settle(g);
        g->runner = runner, g->app = app;
        double t = scale * time_s(g, &config.app[app]);
        longest = t > longest ? t : longest;
    }
    for (int k = 0; k < count; k++) state->gpu[gpus[k]].until_s = now_s() + left * longest;
    leave(OK);
    return longest;
}

int main(int argc, char **argv) {
    const char *list = argc > 3 ? argv[3] : getenv("CUDA_VISIBLE_DEVICES");
    double scale = argc > 2 ? atof(argv[2]) : 1, done = 0;
    int gpus[GPUS], count = 0;
    unsigned app = 0;
    if (begin()) return fprintf(stderr, "fake-job: no FAKE_NVML\n"), 2;
    char *end;
    for (const char *at = list ? list : "0"; count < GPUS; at = end + 1) {
        int gpu = strtol(at, &end, 10);
        if (end == at || gpu < 0 || gpu >= GPUS) return fprintf(stderr, "fake-job: which GPUs?\n"), 2;
        gpus[count++] = gpu;
        if (*end != ',') break;
    }
    while (app < config.apps && argc > 1 && strcmp(argv[1], config.app[app].name)) app++;
    if (app == config.apps) return fprintf(stderr, "fake-job: no application %s\n", argv[1]), 2;
    signal(SIGTERM, stop), signal(SIGINT, stop);
    double all_s = busy(gpus, count, app, getpid(), scale, 1), t = now_s();
    while (!stopped) {
        double left_s = (1 - done) * all_s;
        pause_s(left_s < 0.05 ? left_s : 0.05); /* clocks may change meanwhile */
        double later = now_s();
        done += (later - t) / all_s, t = later;
        if (done >= 1) break;
        all_s = busy(gpus, count, app, getpid(), scale, 1 - done);
    }
    busy(gpus, count, app, 0, scale, 0);
    return stopped ? 143 : 0;
}
#endif
