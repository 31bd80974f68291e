// Runs the kernels in kernels.cl by OpenCL and checks their result; README.md says how to build this.
// The tables come from the program, what follows them is the same for every program.

#define CL_TARGET_OPENCL_VERSION 120
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#include <CL/cl.h>
#endif
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, BOOL };
static const size_t type_bytes[] = {2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1};
static const double type_largest[] = {65504.0, 3.3895313892515355e38, 3.4028234663852886e38, 1.7976931348623157e308};

// What an array is filled with.
enum recipe {
    NORMAL,   // Floats around 0, most of them between -1 and 1.
    RANGE,    // Floats low + k * step, k random of 24 bits.
    WHOLE,    // Random whole numbers from first on, so many.
    OTHERS,   // Random numbers from 0 on, so many, but not the owner's: i % modulus / divisor.
    POSITION, // The position.
    FLOAT,    // The float low.
    INTEGER,  // The integer first.
    STORED,   // What the file has.
};

struct input {
    const char *name;
    enum type type;
    size_t length;
    enum recipe recipe;
    double low, step;
    int64_t first;
    uint64_t count, modulus, divisor, seed;
    const char *file;
};

// A buffer holds an input or an output, of that number, what one kernel leaves for the next, what kernels found wrong
// with the inputs, that kernels in a loop have something to do, which is always so here, or where work-groups meet.
enum role { INPUT, TEMPORARY, OUTPUT, FAULT, GOES_ON, MEETING };
struct buffer {
    const char *name;
    enum type type;
    size_t length;
    enum role role;
    int number;
};

// What a kernel may find wrong: an index, or something else.
struct fault {
    const char *kernel;
    int is_index;
    const char *text;
};

// An argument is a buffer of that number, or an input that is passed by value.
enum kind { BUFFER, SCALAR, COUNTER };
struct argument {
    enum kind kind;
    int number;
};

struct launch {
    const char *kernel;
    size_t global[3], local[3];
    int count;
    const struct argument *arguments;
};

// What the host does. REPEAT goes to the END that belongs to it: `a` times, or until a CHECK finds a 0 in buffer `a`.
// REPEAT_GIVEN does so as often as the input `a` says: plus `b` as numbers of its type, less `c`.
enum does { LAUNCH, REPEAT, REPEAT_GIVEN, CHECK, SWAP, END };
struct step {
    enum does does;
    int64_t a, b, c;
};

//@tables

static void fail(const char *doing, cl_int error) {
    fprintf(stderr, "%s: OpenCL error %d\n", doing, (int)error);
    exit(2);
}

static void check(cl_int error, const char *doing) {
    if (error != CL_SUCCESS) fail(doing, error);
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(2);
    }
    return memory;
}

// A whole file and its length; a zero follows the text.
static char *read_file(const char *name, size_t *length) {
    FILE *file = fopen(name, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "%s cannot be read: run this in its own folder\n", name);
        exit(2);
    }
    long size = ftell(file);
    rewind(file);
    char *text = allocate((size_t)size + 1);
    if (size < 0 || fread(text, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "%s cannot be read\n", name);
        exit(2);
    }
    fclose(file);
    text[size] = 0;
    *length = (size_t)size;
    return text;
}

// The random number at a position (SplitMix64).
static uint64_t random_at(uint64_t seed, uint64_t i) {
    uint64_t x = seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// The half nearest to a number, of two that are as near the even one.
static uint16_t to_half(double x) {
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    x = fabs(x);
    if (isnan(x)) return sign | 0x7e00;
    if (x >= 65520.0) return sign | 0x7c00;
    // The distance between halves of this size.
    double unit = 1.0 / 16777216.0;
    unsigned exponent = 0;
    for (; x >= unit * 2048.0; unit *= 2.0) exponent++;
    unsigned whole = (unsigned)(x / unit);
    double rest = x / unit - whole;
    if (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)) whole++;
    return (uint16_t)(sign | (exponent * 1024 + whole));
}

static double from_half(uint16_t bits) {
    unsigned exponent = bits >> 10 & 31;
    double x = bits & 1023;
    if (exponent == 31) {
        x = x == 0.0 ? INFINITY : NAN;
    } else if (exponent == 0) {
        x /= 16777216.0;
    } else {
        x = (1024.0 + x) / 16777216.0;
        for (; exponent > 1; exponent--) x *= 2.0;
    }
    return bits & 0x8000 ? -x : x;
}

// The upper half of the nearest single whose lower half is zero, of two that are as near the even one.
static uint16_t to_upper(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double from_upper(uint16_t upper) {
    uint32_t bits = (uint32_t)upper << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

// An element as it is stored: of a float type the float, else the integer.
static void store(enum type type, double x, int64_t k, char *to) {
    switch (type) {
    case F16: { uint16_t v = to_half(x); memcpy(to, &v, 2); break; }
    case BF16: { uint16_t v = to_upper((float)x); memcpy(to, &v, 2); break; }
    case F32: { float v = (float)x; memcpy(to, &v, 4); break; }
    case F64: memcpy(to, &x, 8); break;
    case I8: case U8: { uint8_t v = (uint8_t)k; memcpy(to, &v, 1); break; }
    case I16: case U16: { uint16_t v = (uint16_t)k; memcpy(to, &v, 2); break; }
    case I32: case U32: { uint32_t v = (uint32_t)k; memcpy(to, &v, 4); break; }
    case I64: case U64: memcpy(to, &k, 8); break;
    case BOOL: { uint8_t v = k & 1; memcpy(to, &v, 1); break; }
    }
}

// The element stored: the bits of a double, or of an integer extended to 64 bits.
static uint64_t load(enum type type, const char *from) {
    uint64_t bits = 0;
    double x = 0.0;
    switch (type) {
    case F16: { uint16_t v; memcpy(&v, from, 2); x = from_half(v); break; }
    case BF16: { uint16_t v; memcpy(&v, from, 2); x = from_upper(v); break; }
    case F32: { float v; memcpy(&v, from, 4); x = v; break; }
    case F64: memcpy(&x, from, 8); break;
    case I8: { int8_t v; memcpy(&v, from, 1); return (uint64_t)(int64_t)v; }
    case I16: { int16_t v; memcpy(&v, from, 2); return (uint64_t)(int64_t)v; }
    case I32: { int32_t v; memcpy(&v, from, 4); return (uint64_t)(int64_t)v; }
    case U8: { uint8_t v; memcpy(&v, from, 1); return v; }
    case U16: { uint16_t v; memcpy(&v, from, 2); return v; }
    case U32: { uint32_t v; memcpy(&v, from, 4); return v; }
    case I64: case U64: memcpy(&bits, from, 8); return bits;
    case BOOL: return *from != 0;
    }
    memcpy(&bits, &x, 8);
    return bits;
}

static char *make_input(const struct input *in) {
    size_t width = type_bytes[in->type], length;
    if (in->recipe == STORED) {
        char *data = read_file(in->file, &length);
        if (length != in->length * width) {
            fprintf(stderr, "%s has %zu bytes instead of %zu\n", in->file, length, in->length * width);
            exit(2);
        }
        return data;
    }
    char *data = allocate(in->length * width);
    for (uint64_t i = 0; i < in->length; i++) {
        uint64_t bits = random_at(in->seed, i);
        int64_t k = 0;
        double x = 0.0;
        switch (in->recipe) {
        case NORMAL:
            // The sum of four numbers of 16 bits.
            x = (double)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
            x = (x - 131070.0) / 32768.0;
            break;
        case RANGE:
            x = in->low + (double)(bits >> 40) * in->step;
            break;
        case OTHERS: {
            uint64_t owner = i % in->modulus / in->divisor;
            uint64_t other = bits % (in->count > 2 ? in->count - 1 : 1);
            // Those from the owner on are one further.
            x = (double)(k = (int64_t)(other + (other >= owner)));
            break;
        }
        case WHOLE:
            k = (int64_t)((uint64_t)in->first + bits % (in->count > 0 ? in->count : 1));
            x = (double)k;
            break;
        case POSITION:
            x = (double)(k = (int64_t)i);
            break;
        case FLOAT:
            x = in->low;
            break;
        case INTEGER:
            x = (double)(k = in->first);
            break;
        case STORED:
            break;
        }
        store(in->type, x, k, data + i * width);
    }
    return data;
}

// Whether a result may be taken for the one that is wanted.
static int agrees(enum type type, uint64_t have_bits, uint64_t want_bits, double slack) {
    if (type > F64) return have_bits == want_bits;
    double have, want;
    memcpy(&have, &have_bits, 8);
    memcpy(&want, &want_bits, 8);
    if (have == want || (isnan(have) && isnan(want))) return 1;
    if (isfinite(have) && isfinite(want)) return fabs(have - want) <= slack;
    // Rounding may have made an infinity of a large number.
    int near_have = isinf(have) || fabs(have) + slack >= type_largest[type];
    int near_want = isinf(want) || fabs(want) + slack >= type_largest[type];
    return (have < 0.0) == (want < 0.0) && near_have && near_want;
}

static void show(enum type type, uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    if (type <= F64) fprintf(stderr, "%.9g", x);
    else if (type <= I64) fprintf(stderr, "%lld", (long long)bits);
    else fprintf(stderr, "%llu", (unsigned long long)bits);
}

static int contains(const char *text, const char *part) {
    for (; *text != 0; text++) {
        size_t i = 0;
        while (part[i] != 0 && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
        if (part[i] == 0) return 1;
    }
    return part[0] == 0;
}

// The device of number "#k", or the first whose name or platform's name contains the text, or the first of all.
static cl_device_id find_device(const char *wanted, char *name, size_t room) {
    cl_platform_id platforms[16];
    cl_uint platform_count = 0;
    long number = 0;
    check(clGetPlatformIDs(16, platforms, &platform_count), "looking for platforms");
    for (cl_uint p = 0; p < platform_count && p < 16; p++) {
        cl_device_id devices[64];
        cl_uint device_count = 0;
        char platform[256] = "";
        clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof platform - 1, platform, NULL);
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 64, devices, &device_count) != CL_SUCCESS) continue;
        for (cl_uint d = 0; d < device_count && d < 64; d++, number++) {
            check(clGetDeviceInfo(devices[d], CL_DEVICE_NAME, room, name, NULL), "asking a device for its name");
            if (wanted == NULL) return devices[d];
            if (wanted[0] == '#' ? atol(wanted + 1) == number : contains(name, wanted) || contains(platform, wanted))
                return devices[d];
        }
    }
    fprintf(stderr, "no device %s\n", wanted == NULL ? "at all" : wanted);
    exit(2);
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cl_command_queue queue;
static cl_kernel kernels[LAUNCHES + 1];
static cl_mem memory[BUFFERS + 1];
static char *inputs[INPUTS + 1];

// Where an open loop begins, how many iterations are left, and the number of this one.
struct loop {
    int begin;
    int64_t left;
    cl_int number;
};

// The step after the end of the loop that step `at` is in.
static int end_of(int at) {
    for (int depth = 0; at < STEPS; at++) {
        if (steps[at].does == REPEAT || steps[at].does == REPEAT_GIVEN) depth++;
        if (steps[at].does == END && depth-- == 0) return at + 1;
    }
    return at;
}

// How often a loop repeats, -1 for one that a CHECK ends.
static int64_t times_of(const struct step *step) {
    if (step->does == REPEAT) return step->a;
    enum type type = input_table[step->a].type;
    char sum[8];
    store(type, 0.0, (int64_t)(load(type, inputs[step->a]) + (uint64_t)step->b), sum);
    uint64_t bound = load(type, sum);
    int none = type == U64 ? step->c > 0 && bound < (uint64_t)step->c : (int64_t)bound < step->c;
    uint64_t times = none ? 0 : bound - (uint64_t)step->c;
    return times > INT64_MAX ? INT64_MAX : (int64_t)times;
}

// Runs the program once and gives the time from the start of the first kernel to the end of the last, in microseconds.
static double run(void) {
    cl_event first = NULL, last = NULL;
    cl_mem place[BUFFERS + 1];
    struct loop open[STEPS + 1];
    int depth = 0;
    memcpy(place, memory, sizeof place);
    for (int at = 0; at < STEPS;) {
        const struct step *step = &steps[at++];
        if (step->does == REPEAT || step->does == REPEAT_GIVEN) {
            int64_t times = times_of(step);
            if (times == 0) at = end_of(at);
            else open[depth++] = (struct loop){at, times, 0};
        } else if (step->does == END) {
            struct loop *loop = &open[depth - 1];
            loop->number++;
            if (loop->left > 0 && --loop->left == 0) depth--;
            else at = loop->begin;
        } else if (step->does == CHECK) {
            cl_uchar flag = 0;
            check(clEnqueueReadBuffer(queue, place[step->a], CL_TRUE, 0, 1, &flag, 0, NULL, NULL), "reading a condition");
            if (!flag) {
                depth--;
                at = end_of(at);
            }
        } else if (step->does == SWAP) {
            cl_mem other = place[step->a];
            place[step->a] = place[step->b];
            place[step->b] = other;
        } else {
            const struct launch *launch = &launches[step->a];
            cl_kernel kernel = kernels[step->a];
            const size_t *g = launch->global;
            if (g[0] == 0 || g[1] == 0 || g[2] == 0) continue;
            for (int a = 0; a < launch->count; a++) {
                int number = launch->arguments[a].number;
                cl_int error = CL_SUCCESS;
                if (launch->arguments[a].kind == BUFFER)
                    error = clSetKernelArg(kernel, (cl_uint)a, sizeof(cl_mem), &place[number]);
                if (launch->arguments[a].kind == COUNTER)
                    error = clSetKernelArg(kernel, (cl_uint)a, sizeof(cl_int), &open[number].number);
                check(error, "setting an argument");
            }
            cl_uint dimensions = g[2] > 1 ? 3 : g[1] > 1 ? 2 : 1;
            cl_event event;
            check(clEnqueueNDRangeKernel(queue, kernel, dimensions, NULL, g, launch->local, 0, NULL, &event),
                  launch->kernel);
            if (last && last != first) clReleaseEvent(last);
            if (!first) first = event;
            last = event;
        }
    }
    check(clFinish(queue), "running the kernels");
    if (!first) return 0.0;
    cl_ulong start, end;
    check(clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL), "timing");
    check(clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL), "timing");
    clReleaseEvent(first);
    if (last != first) clReleaseEvent(last);
    return (double)(end - start) * 1e-3;
}

// Ends the program when a kernel found something wrong with the inputs.
static void check_faults(const cl_mem *memory) {
    for (int b = 0; b < BUFFERS; b++) {
        if (buffers[b].role != FAULT) continue;
        // The number of what is wrong, and the index as two halves.
        int32_t said[3] = {0};
        check(clEnqueueReadBuffer(queue, memory[b], CL_TRUE, 0, sizeof said, said, 0, NULL, NULL), "reading");
        if (said[0] < 1 || said[0] > FAULTS) continue;
        const struct fault *fault = &faults[said[0] - 1];
        fprintf(stderr, "%s: %s finds that the program has no value on these inputs: ", PROGRAM, fault->kernel);
        uint64_t index = (uint64_t)(uint32_t)said[1] | (uint64_t)(uint32_t)said[2] << 32;
        if (fault->is_index) fprintf(stderr, "index %lld is ", (long long)index);
        fprintf(stderr, "%s\n", fault->text);
        exit(2);
    }
}

int main(int argc, char **argv) {
    char name[256] = "";
    cl_int error;
    const char *wanted = argc > 1 ? argv[1] : getenv("DEVICE");
    cl_device_id device = find_device(wanted, name, sizeof name - 1);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "making a context");
    queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &error);
    check(error, "making a queue");

    size_t length;
    char *source = read_file("kernels.cl", &length);
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&source, &length, &error);
    check(error, "making a program");
    error = clBuildProgram(program, 1, &device, BUILD_OPTIONS, NULL, NULL);
    if (error != CL_SUCCESS) {
        static char said[1 << 16];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof said - 1, said, NULL);
        fprintf(stderr, "%s\n", said);
        fail("building kernels.cl", error);
    }

    for (int i = 0; i < INPUTS; i++) inputs[i] = make_input(&input_table[i]);

    for (int b = 0; b < BUFFERS; b++) {
        const struct buffer *buffer = &buffers[b];
        size_t bytes = (buffer->length > 0 ? buffer->length : 1) * type_bytes[buffer->type];
        size_t used = buffer->length * type_bytes[buffer->type];
        memory[b] = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &error);
        check(error, buffer->name);
        if (used == 0) continue;
        char *data = buffer->role == INPUT ? inputs[buffer->number] : allocate(used);
        // What a kernel forgets to write is wrong then.
        if (buffer->role != INPUT) memset(data, buffer->role == FAULT || buffer->role == MEETING ? 0 : 0xff, used);
        check(clEnqueueWriteBuffer(queue, memory[b], CL_TRUE, 0, used, data, 0, NULL, NULL), buffer->name);
        if (buffer->role != INPUT) free(data);
    }
    for (int l = 0; l < LAUNCHES; l++) {
        const struct launch *launch = &launches[l];
        kernels[l] = clCreateKernel(program, launch->kernel, &error);
        check(error, launch->kernel);
        for (int a = 0; a < launch->count; a++) {
            int number = launch->arguments[a].number;
            // Buffers and counters are set at each launch: loops exchange and change them.
            if (launch->arguments[a].kind == SCALAR)
                error = clSetKernelArg(kernels[l], (cl_uint)a, type_bytes[input_table[number].type], inputs[number]);
            check(error, "setting an argument");
        }
    }

    run();
    check_faults(memory);

    // For each output the number of elements checked, and of each its position, its value and how far it may be off.
    char *expected = read_file("expected.bin", &length);
    const char *row = expected;
    uint64_t checked = 0, wrong = 0, results = 0;
    for (int k = 0; k < OUTPUTS; k++) {
        int b = 0;
        while (buffers[b].role != OUTPUT || buffers[b].number != k) b++;
        enum type type = buffers[b].type;
        size_t bytes = buffers[b].length * type_bytes[type];
        char *result = allocate(bytes);
        if (bytes > 0) check(clEnqueueReadBuffer(queue, memory[b], CL_TRUE, 0, bytes, result, 0, NULL, NULL), "reading");
        uint64_t count;
        memcpy(&count, row, 8);
        row += 8;
        if (count > (length - (size_t)(row - expected)) / 24) {
            fprintf(stderr, "expected.bin is too short\n");
            exit(2);
        }
        for (uint64_t i = 0; i < count; i++, row += 24) {
            uint64_t at, want;
            double slack;
            memcpy(&at, row, 8);
            if (at >= buffers[b].length) {
                fprintf(stderr, "expected.bin is for another result\n");
                exit(2);
            }
            memcpy(&want, row + 8, 8);
            memcpy(&slack, row + 16, 8);
            uint64_t have = load(type, result + at * type_bytes[type]);
            if (agrees(type, have, want, slack)) continue;
            if (wrong++ == 0) {
                fprintf(stderr, "result %d, element %llu: ", k, (unsigned long long)at);
                show(type, have);
                fprintf(stderr, " instead of ");
                show(type, want);
                fprintf(stderr, "\n");
            }
        }
        checked += count;
        results += buffers[b].length;
        free(result);
    }

    double times[RUNS];
    for (int i = 0; i < RUNS; i++) times[i] = run();
    qsort(times, RUNS, sizeof times[0], compare_times);
    printf("%s: %s on %s, %llu of %llu elements checked, %llu wrong, %.2f us\n", PROGRAM, wrong == 0 ? "OK" : "MISMATCH",
           name, (unsigned long long)checked, (unsigned long long)results, (unsigned long long)wrong, times[RUNS / 2]);

    for (int l = 0; l < LAUNCHES; l++) clReleaseKernel(kernels[l]);
    for (int b = 0; b < BUFFERS; b++) clReleaseMemObject(memory[b]);
    for (int i = 0; i < INPUTS; i++) free(inputs[i]);
    free(expected);
    free(source);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return wrong == 0 ? 0 : 1;
}
