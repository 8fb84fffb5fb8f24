/* SPDX-License-Identifier: Apache-2.0 */
/* hvd: data-parallel collectives. The C ABI, and the only symbols that libhvd exports.
 *
 * Made to last: tensors and options are structs that begin with their own size (set `struct_size`
 * to sizeof of the struct you compiled with; HVD_*_INIT does), enums have fixed values, and no C++
 * crosses the boundary. Functions return an hvd_status_t (0 is success) unless they say otherwise;
 * hvd_last_error() then has the whole message for the calling thread.
 *
 * Threads: every function may be called from any thread. A collective must be submitted by every
 * member of the process set; the order may differ from rank to rank (names tell which belongs to
 * which; unnamed calls are matched by the order of unnamed calls). Blocking calls may run the work
 * themselves. The child of a fork cannot use hvd, nor wait for its parent's calls:
 * HVD_ERR_NOT_INITIALIZED.
 *
 * Memory: from an asynchronous submit until the handle is done, the tensors' memory belongs to hvd.
 * Strings and shapes are copied at the call.
 */
#ifndef HVD_HVD_H_
#define HVD_HVD_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HVD_EXPORT __attribute__((visibility("default")))
#else
#define HVD_EXPORT
#endif

#define HVD_VERSION_MAJOR 0
#define HVD_VERSION_MINOR 1
#define HVD_VERSION_PATCH 0

typedef enum hvd_status_t {
  HVD_OK = 0,
  HVD_ERR_INVALID = 1,         /* an argument makes no sense by itself */
  HVD_ERR_NOT_INITIALIZED = 2, /* hvd_init has not succeeded, or hvd_shutdown has been called */
  HVD_ERR_MISMATCH = 3,  /* ranks asked for different things under one name; the engine lives on */
  HVD_ERR_DUPLICATE = 4, /* this name is already pending on this rank */
  HVD_ERR_ABORTED = 5, /* a rank died, left or ran out of memory; hvd_last_error names the cause */
  HVD_ERR_UNSUPPORTED = 6, /* this build or this version cannot do it */
  HVD_ERR_TIMEOUT = 7,     /* the time that the caller gave is over (hvd_store_*) */
  HVD_ERR_LAUNCH = 8,      /* the launcher's link is missing, refused or broken */
  HVD_ERR_INTERNAL = 9,    /* out of memory before the other ranks were told; or a fault of hvd's */
  HVD_ERR_HOSTS_UPDATED = 10, /* the job's members are to change: hvd_reset, without going back */
  HVD_ERR_REMOVED = 11        /* this process is in no later epoch of the job: end it */
} hvd_status_t;

typedef enum hvd_dtype_t {
  HVD_UINT8 = 0,
  HVD_INT8 = 1,
  HVD_UINT16 = 2,
  HVD_INT16 = 3,
  HVD_INT32 = 4,
  HVD_INT64 = 5,
  HVD_FLOAT16 = 6,
  HVD_FLOAT32 = 7,
  HVD_FLOAT64 = 8,
  HVD_BOOL = 9, /* one byte; any other value than 0 is true, results are 0 or 1 */
  HVD_BFLOAT16 = 10,
  HVD_UINT32 = 11,
  HVD_UINT64 = 12,
  HVD_FLOAT8_E4M3FN = 13, /* up to 448, without infinities: what is larger becomes 448 */
  HVD_FLOAT8_E5M2 = 14,   /* up to 57344, with infinities, as float16 */
  HVD_COMPLEX64 = 15,     /* two float32: real and imaginary part */
  HVD_COMPLEX128 = 16     /* two float64 */
} hvd_dtype_t;

/* On bool: SUM and MAX are "or", PRODUCT and MIN are "and"; AVERAGE is refused. Sums and products
 * of integers wrap; their averages never do: the exact quotient is truncated towards zero. float16
 * and bfloat16 are summed in float32 and rounded once within a host. A scale multiplies the numbers
 * that a program would multiply itself: what prescale makes of an element, and what postscale is
 * applied to, has 11 and 8 binary digits, as in the type, though it may be larger or smaller than
 * the type's numbers. (ADASUM's scales do not round.) Between hosts float16 sums are made smaller
 * before they travel where postscale or the average makes the result smaller, so they overflow only
 * where the result does. An average of float32, float64 or bfloat16 overflows where the sum does,
 * in float64 or float32. How a program's threads round, and whether they flush denormals or trap,
 * does not matter.
 *
 * float8 is combined in float64, between hosts too, and rounded once, to nearest even: its sums
 * are exact until then, whatever the order. (Between hosts MIN and MAX are rounded after prescale
 * as well.) Complex numbers have SUM, AVERAGE and PRODUCT, and are scaled by real numbers; they
 * have no order, so MIN and MAX are refused. ADASUM is for float16, bfloat16, float32 and float64.
 * BAND, BOR and BXOR are for integers and bool, whose results are 0 or 1, and cannot be scaled. All
 * that is refused is HVD_ERR_INVALID. */
typedef enum hvd_op_t {
  HVD_AVERAGE = 0,
  HVD_SUM = 1,
  HVD_ADASUM = 2, /* float tensors; adds orthogonal gradients, averages parallel ones */
  HVD_MIN = 3,
  HVD_MAX = 4,
  HVD_PRODUCT = 5,
  HVD_BAND = 6, /* bitwise and */
  HVD_BOR = 7,  /* bitwise or */
  HVD_BXOR = 8  /* bitwise exclusive or */
} hvd_op_t;

/* How float32 and float64 tensors travel in a reduction: as they are, or in 16 bits. Received
 * elements are summed in float32. Other types always travel as they are. */
typedef enum hvd_compression_t {
  HVD_COMPRESSION_NONE = 0,
  HVD_COMPRESSION_FP16 = 1,
  HVD_COMPRESSION_BF16 = 2
} hvd_compression_t;

typedef enum hvd_flags_t {
  /* HVD_AVERAGE divides by the number of ranks that have submitted the tensor, not by all: those
   * that have joined (hvd_join) may have not. */
  HVD_AVERAGE_OVER_CONTRIBUTORS = 1,
  /* With it any collective is HVD_ERR_MISMATCH, naming a rank, while one has joined (hvd_join),
   * instead of going on without it. All ranks give it, or none. */
  HVD_REFUSE_JOINED = 2,
  /* A wait for tensors on a GPU returns when the bytes are there, as for CPU tensors. */
  HVD_WAIT_ON_HOST = 4
} hvd_flags_t;

typedef uint64_t hvd_handle_t; /* never 0 */

/* An asynchronous call that is done: its tag (hvd_options_t) and its own status. */
typedef struct hvd_completion_t {
  uint64_t tag;
  hvd_handle_t handle;
  int32_t status; /* hvd_status_t */
  int32_t reserved;
} hvd_completion_t;
typedef struct hvd_queue_t hvd_queue_t; /* see hvd_queue_create */

typedef enum hvd_device_type_t { HVD_CPU = 0, HVD_CUDA = 1 } hvd_device_type_t;

/* A dense, contiguous (row-major) tensor.
 *
 * On a GPU a call keeps the order of streams, as a kernel would: it begins when all that is on
 * `stream` at the submission has happened, and once a wait for it has returned, what is put on
 * `stream` comes after it. The host does not wait for the GPU (HVD_WAIT_ON_HOST does): what the
 * wait returns is how the call went up to there; hvd_check tells what came later. All tensors of a
 * call lie on one GPU, their streams may differ. A stream that is being captured into a graph is
 * HVD_ERR_UNSUPPORTED. A blocking call is a submit and a wait. */
typedef struct hvd_tensor_t {
  size_t struct_size;
  void* data; /* may be NULL when it has no elements */
  const int64_t* shape;
  int32_t ndim;        /* 0 to 16; 0 is a scalar (one element) */
  int32_t dtype;       /* hvd_dtype_t */
  int32_t device_type; /* hvd_device_type_t */
  int32_t device_id;   /* of HVD_CUDA: among the GPUs that this process sees */
  void* stream;        /* cudaStream_t for HVD_CUDA (NULL: the default stream), else NULL */
} hvd_tensor_t;
#define HVD_TENSOR_INIT \
  { sizeof(hvd_tensor_t), NULL, NULL, 0, HVD_FLOAT32, HVD_CPU, 0, NULL }

#define HVD_GLOBAL_PROCESS_SET 0

/* Options of any collective; NULL means all defaults. Fields that an operation has no use for must
 * keep their default. */
typedef struct hvd_options_t {
  size_t struct_size;
  const char* name;    /* NULL or "": unnamed. At most 4095 bytes; begins with no byte 1 or 2. */
  int32_t process_set; /* 0: all ranks; others are made by hvd_init or hvd_add_process_set */
  int32_t op;          /* hvd_op_t, for reductions; default HVD_AVERAGE */
  int32_t root;        /* global rank, for broadcast */
  int32_t reserved;    /* must be 0 */
  /* Younger fields: a caller with a smaller struct_size has the defaults. */
  /* For reductions: each input is multiplied by prescale first, before it is summed or compressed,
   * and the result by postscale; both default to 1. On integers each product is a double that is
   * truncated towards zero (3 times 0.5 is 1, -3 times 0.5 is -1; an average's division and
   * postscale are truncated once), so 64-bit values beyond 2^53 lose their last bits. A value that
   * does not fit the type wraps, as sums do. Bool and bitwise operations cannot be scaled. */
  double prescale;
  double postscale;
  int32_t compression; /* hvd_compression_t, for reductions; default none */
  int32_t flags;       /* hvd_flags_t, or-ed; default 0 */
  /* The ways in which the end of asynchronous calls is told; one of the two, or neither. The end is
   * told once for each call that was submitted, and never inside the call that submits it, though
   * perhaps before that returns (*handle is set before). The call's result is in memory by then.
   * The handle stays until hvd_wait or hvd_release. Everything is told before hvd_shutdown returns.
   *
   * On a GPU that is when the results are there, later than a wait may return.
   *
   * done: called from a thread that is inside hvd, without any lock held: it may submit, and wait
   * for or release this handle, and must not block or wait for anything else. hvd_last_error has
   * the message when `status` is not HVD_OK. */
  void (*done)(void* done_arg, hvd_handle_t handle, hvd_status_t status);
  void* done_arg;
  hvd_queue_t* queue; /* gets a hvd_completion_t; must live until then */
  uint64_t tag;       /* the caller's, for that */
  /* Where output is NULL: gives the memory that the result goes to, of `shape` and `dtype`, instead
   * of the library's (a framework's own, for instance). `index` is the tensor's in a group, else 0.
   * Called once a result, from a thread that is inside hvd, while other ranks wait: it must return
   * soon and must not call hvd. `shape` is valid during the call. NULL: there is no memory; the
   * call then fails on this rank, with HVD_ERR_UNSUPPORTED. The memory stays the caller's: wait
   * with hvd_wait, or hvd_wait_alltoall without a result. */
  void* (*result_fn)(void* result_arg, const int64_t* shape, int32_t ndim, int32_t dtype,
                     int32_t index);
  void* result_arg;
  /* For tensors on a GPU: a cudaEvent_t that has been recorded; the call begins behind it, instead
   * of behind what is on the tensors' streams. The caller's again when the call is done. */
  void* ready_event;
  /* A text that says what the tensors are to the program: their names in their order, for instance.
   * Ranks whose texts are not the same get HVD_ERR_MISMATCH, each with its own in the message, and
   * nothing is exchanged. The same happens when only some ranks give one. NULL or "": nothing is
   * compared. Copied. */
  const char* contents;
} hvd_options_t;
#define HVD_OPTIONS_INIT                                                              \
  {                                                                                   \
    sizeof(hvd_options_t), NULL, HVD_GLOBAL_PROCESS_SET, HVD_AVERAGE, 0, 0, 1.0, 1.0, \
        HVD_COMPRESSION_NONE, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL          \
  }

typedef struct hvd_init_options_t {
  size_t struct_size;
  /* Younger fields: process sets to make at once, as hvd_add_process_set does: process_sets[i] has
   * process_set_sizes[i] global ranks and becomes set i + 1. The same on all ranks. When one cannot
   * be made, hvd_init fails with the code of hvd_add_process_set, and this rank is out again. */
  const int32_t* const* process_sets;
  const int32_t* process_set_sizes;
  int32_t process_set_count;
  int32_t reserved; /* must be 0 */
} hvd_init_options_t;
#define HVD_INIT_OPTIONS_INIT \
  { sizeof(hvd_init_options_t), NULL, NULL, 0, 0 }

/* Joins the job that started this process; without a launcher (no HVD_RANK, no HVD_LINK) gives
 * size 1. One of several that another launcher has started (mpirun, srun, torchrun and their like)
 * is no job of one: HVD_ERR_LAUNCH, unless HVD_STANDALONE is 1. Returns when all ranks have joined.
 * Settings that they must have alike are compared first: the library, most HVD_ variables, the
 * process sets in `options`; HVD_ERR_LAUNCH on all ranks then names what differs, where. Already
 * initialized: HVD_OK, nothing happens, unless the epoch is over (a rank has left it, or died):
 * then as hvd_reset. May be called again after hvd_shutdown; that starts the job's next epoch.
 * `options` may be NULL. */
HVD_EXPORT hvd_status_t hvd_init(const hvd_init_options_t* options);

/* Leaves the epoch: waits until every rank leaves too (or the epoch is broken), then gives
 * everything back. Work still pending on any rank then ends with HVD_ERR_ABORTED. Not initialized:
 * HVD_OK. */
HVD_EXPORT hvd_status_t hvd_shutdown(void);

HVD_EXPORT int32_t hvd_is_initialized(void); /* 1 or 0 */

/* Where this process stands in the epoch that it has joined: numbers that stay the same until
 * hvd_shutdown. Each returns -1 when not initialized, and none waits for another rank. Ranks count
 * from 0 over the hosts in the order of the host list. */
HVD_EXPORT int32_t hvd_rank(void);       /* among all ranks of the job */
HVD_EXPORT int32_t hvd_size(void);       /* how many there are */
HVD_EXPORT int32_t hvd_local_rank(void); /* among those of this host: picks its GPU, its cores */
HVD_EXPORT int32_t hvd_local_size(void); /* how many this host has */
HVD_EXPORT int32_t
hvd_cross_rank(void); /* index of this host among the hosts that have this local rank */
HVD_EXPORT int32_t hvd_cross_size(void);     /* how many these hosts are */
HVD_EXPORT int32_t hvd_is_homogeneous(void); /* 1: every host has the same number of ranks */

/* ---- process sets ----
 *
 * A collective runs on a process set (options.process_set) and concerns its members only; sets do
 * not wait for one another. Set 0 is all ranks. Within a set, rank order is global rank order.
 * A collective on a set that does not exist or that this rank is no member of is HVD_ERR_INVALID.
 */

/* Every rank of the job calls it with the same ranks (global ranks in any order, each once),
 * members or not; returns when all have. *set gets a number that no other set has had or will have,
 * the same on all ranks. HVD_ERR_DUPLICATE when a set of these ranks exists: hvd_last_error names
 * it, and *set is its number. At most 15 at a time (HVD_ERR_UNSUPPORTED). */
HVD_EXPORT hvd_status_t hvd_add_process_set(const int32_t* ranks, int32_t n, int32_t* set);
/* The same by the members alone; no other rank takes part, or knows of the set. `key` (NULL: "")
 * tells sets of the same ranks apart. Members may make sets of different keys in any order on
 * different threads. *set gets a number of the job's, the same on all members, far beyond those of
 * hvd_add_process_set. HVD_ERR_DUPLICATE when there is one of these ranks and this key: *set is its
 * number; and while another thread of this rank makes it. HVD_ERR_INVALID: this rank is none of
 * `ranks`. HVD_ERR_UNSUPPORTED on all members: one of them is in 48 such sets already, the most
 * that a rank can be in at one time beside those of hvd_add_process_set. A member
 * that joins or leaves meanwhile is named, as with hvd_recv. */
HVD_EXPORT hvd_status_t hvd_add_process_set_members(const int32_t* ranks, int32_t n,
                                                    const char* key, int32_t* set);
/* Every rank of the job calls it, or every member where only these have made it, with nothing
 * pending on the set. The global set cannot be removed (HVD_ERR_INVALID). */
HVD_EXPORT hvd_status_t hvd_remove_process_set(int32_t set);
/* This rank's index in the set: -1 when it is no member, or the set does not exist. */
HVD_EXPORT int32_t hvd_process_set_rank(int32_t set);
/* The number of members: -1 when the set does not exist. */
HVD_EXPORT int32_t hvd_process_set_size(int32_t set);
/* Its members' global ranks, ascending: writes hvd_process_set_size(set) of them. */
HVD_EXPORT hvd_status_t hvd_process_set_ranks(int32_t set, int32_t* ranks);
/* How many sets there are, the global one included: -1 when not initialized. */
HVD_EXPORT int32_t hvd_process_set_count(void);
/* Their numbers, ascending: writes at most `capacity`, *count gets how many there are. */
HVD_EXPORT hvd_status_t hvd_process_set_ids(int32_t* ids, int32_t capacity, int32_t* count);

/* ---- collectives ----
 *
 * Each has an asynchronous form that returns a handle. With output NULL, where that is allowed, the
 * library allocates the result: take it through `result` (blocking) or with hvd_wait_result
 * (asynchronous), and give it back with hvd_free_result. */

/* Reduces elementwise over all ranks; every rank ends with the same bits. input and output must
 * have the same shape and dtype; output->data == input->data is in place; otherwise they must not
 * overlap (HVD_ERR_INVALID, as for all collectives). */
HVD_EXPORT hvd_status_t hvd_allreduce(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                      const hvd_options_t* options);
HVD_EXPORT hvd_status_t hvd_allreduce_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                            const hvd_options_t* options, hvd_handle_t* handle);
/* As hvd_allreduce, for callers that have signals to look at: blocks so long at most (see
 * hvd_wait_for). *handle is 0 when it has ended; else it goes on, as of hvd_allreduce_async. */
HVD_EXPORT hvd_status_t hvd_allreduce_for(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                          const hvd_options_t* options, int64_t microseconds,
                                          hvd_handle_t* handle);

/* Reduces over all ranks and gives each its rows of the first dimension, in rank order; when they
 * do not divide evenly, the first ranks get one more. Scalars are refused, HVD_ADASUM too. output
 * may be NULL; it must not overlap input, unless it is this rank's rows of it: then they are
 * reduced in place, and the rest of input stays as it is. */
HVD_EXPORT hvd_status_t hvd_reducescatter(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                          const hvd_options_t* options, hvd_tensor_t* result);
HVD_EXPORT hvd_status_t hvd_reducescatter_async(const hvd_tensor_t* input,
                                                const hvd_tensor_t* output,
                                                const hvd_options_t* options, hvd_handle_t* handle);

/* Concatenates the ranks' tensors along the first dimension, in rank order. The first dimension may
 * differ from rank to rank, the others may not; scalars are refused. output may be NULL; else its
 * shape must be the result's exactly (else HVD_ERR_MISMATCH on that rank, after the exchange), and
 * it must not overlap input, unless input is this rank's rows of it (in place). */
HVD_EXPORT hvd_status_t hvd_allgather(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                      const hvd_options_t* options, hvd_tensor_t* result);
HVD_EXPORT hvd_status_t hvd_allgather_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                            const hvd_options_t* options, hvd_handle_t* handle);

/* Sends splits[r] rows of the first dimension to rank r of the set, in rank order, and returns what
 * the ranks sent here, in rank order. `nsplits` is the set's size; the splits are not negative and
 * their sum is at most input's rows (what remains goes nowhere). splits NULL: the rows are divided
 * evenly, which must be possible. Scalars are refused. output is as for hvd_allgather. If not NULL,
 * received_splits gets the number of rows from each rank. */
HVD_EXPORT hvd_status_t hvd_alltoall(const hvd_tensor_t* input, const int64_t* splits,
                                     int32_t nsplits, const hvd_tensor_t* output,
                                     const hvd_options_t* options, hvd_tensor_t* result,
                                     int64_t* received_splits);
HVD_EXPORT hvd_status_t hvd_alltoall_async(const hvd_tensor_t* input, const int64_t* splits,
                                           int32_t nsplits, const hvd_tensor_t* output,
                                           const hvd_options_t* options, hvd_handle_t* handle);
/* As hvd_wait_result, for an alltoall alone; result and received_splits may be NULL. */
HVD_EXPORT hvd_status_t hvd_wait_alltoall(hvd_handle_t handle, hvd_tensor_t* result,
                                          int64_t* received_splits);

/* Copies root's tensor to all ranks. output->data == input->data is in place; otherwise they must
 * not overlap. */
HVD_EXPORT hvd_status_t hvd_broadcast(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                      const hvd_options_t* options);
HVD_EXPORT hvd_status_t hvd_broadcast_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                            const hvd_options_t* options, hvd_handle_t* handle);

/* Groups: `count` tensors that become ready, and run, together, under one name. `inputs`, `outputs`
 * and `results` are arrays; the tensors' dtypes may differ among themselves, but not between ranks.
 * outputs NULL: an allreduce is in place; the others' results are allocated, and `results`
 * (blocking) or hvd_wait_results gets them. No output may overlap another tensor's input or output
 * (HVD_ERR_INVALID); tensors may have the same input. */
HVD_EXPORT hvd_status_t hvd_grouped_allreduce(const hvd_tensor_t* inputs,
                                              const hvd_tensor_t* outputs, int32_t count,
                                              const hvd_options_t* options);
HVD_EXPORT hvd_status_t hvd_grouped_allreduce_async(const hvd_tensor_t* inputs,
                                                    const hvd_tensor_t* outputs, int32_t count,
                                                    const hvd_options_t* options,
                                                    hvd_handle_t* handle);
HVD_EXPORT hvd_status_t hvd_grouped_allgather(const hvd_tensor_t* inputs,
                                              const hvd_tensor_t* outputs, int32_t count,
                                              const hvd_options_t* options, hvd_tensor_t* results);
HVD_EXPORT hvd_status_t hvd_grouped_allgather_async(const hvd_tensor_t* inputs,
                                                    const hvd_tensor_t* outputs, int32_t count,
                                                    const hvd_options_t* options,
                                                    hvd_handle_t* handle);
HVD_EXPORT hvd_status_t hvd_grouped_reducescatter(const hvd_tensor_t* inputs,
                                                  const hvd_tensor_t* outputs, int32_t count,
                                                  const hvd_options_t* options,
                                                  hvd_tensor_t* results);
HVD_EXPORT hvd_status_t hvd_grouped_reducescatter_async(const hvd_tensor_t* inputs,
                                                        const hvd_tensor_t* outputs, int32_t count,
                                                        const hvd_options_t* options,
                                                        hvd_handle_t* handle);

/* Between two ranks of a process set, without the others: `destination` (`source`) is a global rank
 * and another than this one; there is no "from any rank". The k-th send to a rank with a tag
 * belongs to that rank's k-th receive from here with this tag in the same set; other tags and ranks
 * may come in any order, so that two ranks may both send first. Both tensors must have the same
 * dtype and number of elements (0 is allowed); else both calls are HVD_ERR_MISMATCH, in the same
 * words, and hvd goes on. A receive is done when `tensor` is written; a send when the receiver has
 * asked for it and the tensor is on its way or there, and its memory is the caller's again.
 *
 * A peer that joins without its part is HVD_ERR_MISMATCH, one that leaves (hvd_shutdown) is
 * HVD_ERR_ABORTED; what it had submitted before goes on. Any number may be pending, of any size,
 * and any threads may call. hvd_barrier waits for this rank's own, like for all that it has
 * submitted. In `options`, name, op and the like must keep their defaults (HVD_ERR_INVALID). */
HVD_EXPORT hvd_status_t hvd_send(const hvd_tensor_t* tensor, int32_t destination, int64_t tag,
                                 const hvd_options_t* options);
HVD_EXPORT hvd_status_t hvd_send_async(const hvd_tensor_t* tensor, int32_t destination, int64_t tag,
                                       const hvd_options_t* options, hvd_handle_t* handle);
HVD_EXPORT hvd_status_t hvd_recv(const hvd_tensor_t* tensor, int32_t source, int64_t tag,
                                 const hvd_options_t* options);
HVD_EXPORT hvd_status_t hvd_recv_async(const hvd_tensor_t* tensor, int32_t source, int64_t tag,
                                       const hvd_options_t* options, hvd_handle_t* handle);

/* Returns when every rank has called it and everything that this rank submitted before is done. The
 * others hear of this rank's call at once: they may do behind theirs what this rank's earlier calls
 * still need. */
HVD_EXPORT hvd_status_t hvd_barrier(const hvd_options_t* options);
/* Is done when every rank has called it; what was submitted before may still be under way. */
HVD_EXPORT hvd_status_t hvd_barrier_async(const hvd_options_t* options, hvd_handle_t* handle);

/* This rank has no more work: until every rank of the job has joined, it takes part, in all its
 * process sets, in the others' barriers, allreduces with neutral values (HVD_AVERAGE divides by all
 * ranks, unless HVD_AVERAGE_OVER_CONTRIBUTORS) and allgathers with no rows; their other collectives
 * are HVD_ERR_MISMATCH, as are MIN, MAX and PRODUCT with a prescale of tensors on a GPU. A call
 * that this rank has submitted before goes on and counts as any other's: it is done when every
 * other rank has submitted it or has joined. Until the join returns this rank's other threads can
 * submit nothing (HVD_ERR_MISMATCH). Returns when all ranks have joined, and all that they had
 * submitted is done; *last_rank (may be NULL) gets the rank that did last. */
HVD_EXPORT hvd_status_t hvd_join(int32_t* last_rank);
/* The same without a thread that waits: takes effect at once, and is done when hvd_join would
 * return. Until then this rank can submit nothing, nor join again (HVD_ERR_MISMATCH); from `done`
 * on it can. hvd_shutdown does not wait for it: it ends with HVD_ERR_ABORTED, on all ranks. In
 * `options`, done, done_arg, queue and tag count; the others keep their defaults (HVD_ERR_INVALID).
 * Waits for a change of process sets that another thread of this rank has under way, and until what
 * this rank has submitted on a GPU is there: not to be called from `done`. */
HVD_EXPORT hvd_status_t hvd_join_async(const hvd_options_t* options, hvd_handle_t* handle);
/* As hvd_wait, for a join alone; last_rank as of hvd_join. */
HVD_EXPORT hvd_status_t hvd_wait_join(hvd_handle_t handle, int32_t* last_rank);

/* *done becomes 1 when hvd_wait would not block, also when that has been called already or the
 * handle has been released; else 0. The handle stays valid. */
HVD_EXPORT hvd_status_t hvd_poll(hvd_handle_t handle, int32_t* done);
/* The same, but waits for it, `microseconds` at most: for callers that have signals to look at.
 * Waits longer by what is under way at the end of that time: a collective that all ranks have
 * submitted is not left in the middle. HVD_ERR_INVALID: microseconds is negative. */
HVD_EXPORT hvd_status_t hvd_wait_for(hvd_handle_t handle, int64_t microseconds, int32_t* done);
/* Gives the handle up without a wait; the call goes on. Its tensors are hvd's until it is done
 * (see hvd_options_t), and a result that the library allocates is freed then. */
HVD_EXPORT hvd_status_t hvd_release(hvd_handle_t handle);
/* Waits, returns the operation's own status and releases the handle. HVD_ERR_INVALID: it is no
 * handle, or has been waited for or released before. */
HVD_EXPORT hvd_status_t hvd_wait(hvd_handle_t handle);
/* As hvd_wait; on success *result describes the library-allocated output (see hvd_allgather). For a
 * group: HVD_ERR_INVALID, and the handle stays. When several threads wait for one handle, one gets
 * the result, the others HVD_ERR_INVALID. */
HVD_EXPORT hvd_status_t hvd_wait_result(hvd_handle_t handle, hvd_tensor_t* result);
/* The same of a group, and of nothing else: `results` has room for its `count` tensors. (The data
 * of every such result is 64-byte aligned.) */
HVD_EXPORT hvd_status_t hvd_wait_results(hvd_handle_t handle, hvd_tensor_t* results, int32_t count);
/* Gives back the data and the shape of such a result, and sets both to NULL. NULL and a result that
 * has been given back do nothing. Any thread, also within `done`; may come after hvd_shutdown. */
HVD_EXPORT void hvd_free_result(hvd_tensor_t* result);

/* If the tensors are on a GPU, `stream` (cudaStream_t), of the same GPU, goes on behind the call.
 * Returns what hvd_wait would, and leaves the handle. If they are on the CPU, only waits. */
HVD_EXPORT hvd_status_t hvd_wait_on(hvd_handle_t handle, void* stream);
/* HVD_OK, or what has gone wrong on this rank's GPUs, also after a wait had returned; or in the
 * epoch: HVD_ERR_ABORTED. Does not wait. */
HVD_EXPORT hvd_status_t hvd_check(void);

/* ---- queues: ends of asynchronous calls, for event loops ----
 *
 * options.queue of a call names the queue that gets its end. Any threads. */
HVD_EXPORT hvd_status_t hvd_queue_create(hvd_queue_t** queue);
/* A descriptor that is readable while the queue has something: for poll and its kin only. It is the
 * queue's. -1: queue is NULL. */
HVD_EXPORT int32_t hvd_queue_fd(const hvd_queue_t* queue);
/* Takes at most `capacity` completions, oldest first; never waits. *count gets how many. */
HVD_EXPORT hvd_status_t hvd_queue_next(hvd_queue_t* queue, hvd_completion_t* completions,
                                       int32_t capacity, int32_t* count);
/* NULL does nothing. HVD_ERR_INVALID while calls that name it are under way; it stays then. */
HVD_EXPORT hvd_status_t hvd_queue_destroy(hvd_queue_t* queue);

/* ---- memory that all ranks of a host see ----
 *
 * Ranks of a host reduce tensors in it where they lie, and fetch each other's from there, without
 * copies in between. Any tensor, or part of one, may lie in it. */

/* *memory gets `bytes` (64-byte aligned) that stay valid until hvd_free, also across hvd_shutdown
 * and hvd_init. HVD_ERR_UNSUPPORTED when there is no room: ordinary memory works as well. */
HVD_EXPORT hvd_status_t hvd_alloc(size_t bytes, void** memory);
/* The same on a device: hvd_alloc for HVD_CPU, whose device_id is 0; device memory for HVD_CUDA. */
HVD_EXPORT hvd_status_t hvd_alloc_on(size_t bytes, int32_t device_type, int32_t device_id,
                                     void** memory);
/* Frees memory of either kind. NULL does nothing. No operation may be using the memory. */
HVD_EXPORT hvd_status_t hvd_free(void* memory);

/* ---- the end of the job ---- */

/* When the job is to end (Ctrl-C, TERM to hvdrun), this rank needs so long between its TERM and its
 * end, for a last checkpoint: hvdrun sends KILL after the longest that a rank has asked for,
 * instead of its default of 5 s. A time that the person has given (--grace, HVD_GRACE) counts in
 * any case. Until then, or until a rank is gone, collectives work: ranks may agree in them on what
 * to save. HVD_ERR_INVALID: it is no number of seconds from 0 to a year. */
HVD_EXPORT hvd_status_t hvd_set_grace(double seconds);

/* ---- seeing inside ---- */

/* hvdrun writes what every rank does from now on to `path` (on its host; relative to its
 * directory): Chrome's JSON, or Perfetto's own format when the name ends in .pftrace or
 * .perfetto-trace. Any rank may ask; asking again for the file that is being written is granted.
 * HVD_ERR_INVALID: it cannot be written; HVD_ERR_UNSUPPORTED: there is no hvdrun. hvd_stop_timeline
 * returns when the file is complete: it can be read at once. HVD_ERR_INVALID: it could not be. */
HVD_EXPORT hvd_status_t hvd_start_timeline(const char* path);
HVD_EXPORT hvd_status_t hvd_stop_timeline(void);
/* Counters and histograms of this rank as JSON text with a final NUL. *bytes is the room in
 * `buffer` and becomes what is needed; HVD_ERR_INVALID when the room is too small. buffer NULL:
 * only asks. */
HVD_EXPORT hvd_status_t hvd_metrics(char* buffer, size_t* bytes);

/* ---- buckets: tensors that are reduced together as they become ready ----
 *
 * A bucket holds the gradients of a model one after the other in memory that all ranks of a host
 * see, or on a GPU. A step writes each gradient into its view and says so; whole chunks of
 * neighbours travel as soon as all of them are ready, while the step goes on. All ranks make the
 * same bucket (the first step compares them: see hvd_bucket_wait); the order in which tensors
 * become ready may differ. */
typedef struct hvd_bucket_t hvd_bucket_t;

enum {
  /* The caller has seen to it that all ranks make the same bucket under this name: no step asks.
   * A rank may therefore make its bucket anew, in other memory, while the others keep theirs. */
  HVD_BUCKET_COMPARED = 1
};
typedef struct hvd_bucket_options_t {
  size_t struct_size;
  size_t chunk_bytes; /* of tensors that travel together; 0: chosen (HVD_BUCKET_BYTES) */
  const hvd_options_t* reduction; /* name, op, process set and scales; NULL: averages over all */
  int32_t dtype;                  /* hvd_dtype_t of all tensors; default HVD_FLOAT32 */
  int32_t flags;                  /* 0, or HVD_BUCKET_COMPARED */
  /* Younger fields: a caller with a smaller struct_size has the defaults. */
  int32_t device_type; /* hvd_device_type_t: where the tensors lie; default HVD_CPU */
  int32_t device_id;   /* of HVD_CUDA: among the GPUs that this process sees */
} hvd_bucket_options_t;
#define HVD_BUCKET_OPTIONS_INIT \
  { sizeof(hvd_bucket_options_t), 0, NULL, HVD_FLOAT32, 0, HVD_CPU, 0 }

/* `counts` has the elements of each of `count` tensors. `options` may be NULL. Buckets without a
 * name belong together by the order in which they are made. The bucket lives until
 * hvd_bucket_destroy, also across hvd_shutdown and hvd_init. */
HVD_EXPORT hvd_status_t hvd_bucket_create(const int64_t* counts, int32_t count,
                                          const hvd_bucket_options_t* options,
                                          hvd_bucket_t** bucket);
/* *data gets where tensor `index` lies (64-byte aligned): always the same place. */
HVD_EXPORT hvd_status_t hvd_bucket_view(const hvd_bucket_t* bucket, int32_t index, void** data);
/* Tensor `index` is written; until hvd_bucket_wait returns, it is hvd's. Any thread.
 * HVD_ERR_INVALID when it is ready already; any other error leaves it not ready. On a GPU: the
 * default stream has written it. */
HVD_EXPORT hvd_status_t hvd_bucket_ready(hvd_bucket_t* bucket, int32_t index);
/* On a GPU: what is on `stream` (cudaStream_t) now writes it. The stream stays until the step has
 * ended. In the CPU's memory: NULL. */
HVD_EXPORT hvd_status_t hvd_bucket_ready_on(hvd_bucket_t* bucket, int32_t index, void* stream);
/* Copies `source` into tensor `index` and makes it ready: as many elements, of the same type, or
 * both of float16, bfloat16, float32 and float64 (rounded to nearest even). `source` is the
 * caller's again when this returns. Errors as above, and HVD_ERR_INVALID for a source that does not
 * fit; the tensor is not ready then. A bucket on a GPU takes sources in the CPU's memory as well,
 * and those on its GPU in the order of their stream, of the same type. */
HVD_EXPORT hvd_status_t hvd_bucket_put(hvd_bucket_t* bucket, int32_t index,
                                       const hvd_tensor_t* source);
/* Waits until tensor `index` is reduced, `microseconds` at most (see hvd_wait_for), and does not
 * end the step. *done 1: its view holds the result and is the caller's, until the next step begins
 * after hvd_bucket_wait; or this returns how its reduction failed. Any threads. HVD_ERR_INVALID,
 * naming them, when it, or tensors that travel with it, are not ready. */
HVD_EXPORT hvd_status_t hvd_bucket_wait_tensor(hvd_bucket_t* bucket, int32_t index,
                                               int64_t microseconds, int32_t* done);
/* Waits until hvd_bucket_wait would not block, `microseconds` at most, and does not end the step:
 * for callers that have signals to look at. *done 1: call hvd_bucket_wait. HVD_ERR_INVALID as
 * there. */
HVD_EXPORT hvd_status_t hvd_bucket_wait_for(hvd_bucket_t* bucket, int64_t microseconds,
                                            int32_t* done);
/* Returns when all tensors are reduced, and begins the next step; with an error of any chunk too.
 * HVD_ERR_INVALID, naming the tensors, when some are not ready: then nothing has changed.
 * HVD_ERR_MISMATCH, naming the tensor and the ranks, when ranks have made the bucket otherwise:
 * what it holds is then undefined.
 * On a GPU the host does not wait for the results (HVD_WAIT_ON_HOST in the reduction's flags does):
 * the streams that have made tensors ready go on behind them. The same holds for
 * hvd_bucket_wait_tensor. */
HVD_EXPORT hvd_status_t hvd_bucket_wait(hvd_bucket_t* bucket);
/* The same, and `stream`, of the same GPU, goes on behind the results as well. */
HVD_EXPORT hvd_status_t hvd_bucket_wait_on(hvd_bucket_t* bucket, void* stream);
/* Gives up a step that has begun, for instance because a backward pass has failed: tensors that are
 * not ready count as zeros, and the rest of the step goes on as in hvd_bucket_wait, which the other
 * ranks call, or this. The views hold nothing of use afterwards. Does nothing when no tensor is
 * ready. */
HVD_EXPORT hvd_status_t hvd_bucket_reset(hvd_bucket_t* bucket);
/* NULL does nothing. Waits for chunks under way. */
HVD_EXPORT void hvd_bucket_destroy(hvd_bucket_t* bucket);

/* ---- elastic jobs: members come and go, and what was committed stays ----
 *
 * In an elastic job (hvdrun's --min-np and its kin) a member that dies does not end the others:
 * their calls end with HVD_ERR_ABORTED, they call hvd_reset, and go on in the next epoch with who
 * is left or has come. Members that are to come or go in order are announced: the next
 * hvd_state_commit or hvd_check_hosts is HVD_ERR_HOSTS_UPDATED on all ranks alike.
 *
 * A state is what the program goes on with: its tensors and some bytes of its own. A commit keeps a
 * copy of it on each host, in memory that outlives the ranks. A program's loop:
 *
 *   hvd_init; hvd_state_create; hvd_state_add ...
 *   for (;;) {
 *     status = hvd_state_sync(state);             everybody has the same state
 *     while (status == HVD_OK && there is work)   train; now and then hvd_state_commit
 *     if (status is HVD_ERR_ABORTED or HVD_ERR_HOSTS_UPDATED) status = hvd_reset(NULL, NULL);
 *     if (status is HVD_ERR_REMOVED) end, with code 0
 *   }
 *
 * All of it works in a job that is not elastic, and without a launcher, too: each process then
 * keeps its commits in memory of its own, which ends with it, and nobody comes or goes. */

/* The epoch that this process has joined, and what hvd_state_sync does in it. The same on all ranks
 * but for `rank`, `is_new`, `needs_state` and `is_over`. */
typedef struct hvd_epoch_t {
  size_t struct_size;
  uint64_t number;     /* grows from epoch to epoch; numbers may be left out */
  uint64_t commit;     /* with which it begins; 0: there is none. Not elastic: this rank's newest */
  int32_t rank;        /* hvd_rank() */
  int32_t size;        /* hvd_size() */
  int32_t survivors;   /* ranks that were in the epoch before */
  int32_t is_new;      /* 1: this process has been in no epoch before */
  int32_t sync;        /* 1: ranks need the root's state */
  int32_t root;        /* whose state they get; -1: nobody has any */
  int32_t rolls_back;  /* 1: the epoch before has broken: who has `commit` goes back to it */
  int32_t needs_state; /* 1: this rank gets the root's */
  /* Younger field: 1: it is over by now, since a rank has left it or died: every call fails. */
  int32_t is_over;
} hvd_epoch_t;
#define HVD_EPOCH_INIT \
  { sizeof(hvd_epoch_t), 0, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0 }
/* HVD_ERR_NOT_INITIALIZED outside an epoch. Does not wait. */
HVD_EXPORT hvd_status_t hvd_epoch(hvd_epoch_t* epoch);
/* Leaves the epoch, broken or not, and joins the next, as hvd_shutdown and hvd_init do. Calls under
 * way on other threads end with their errors; process sets end with the epoch; handles, queues,
 * buckets and memory of hvd_alloc stay. Rank and size may be others afterwards. In an elastic job
 * an epoch that breaks before it has begun is waited out, and the next one joined; so it is by
 * hvd_init. `options` as of hvd_init; both may be NULL. *epoch (struct_size set) gets the new
 * epoch. HVD_ERR_REMOVED: this process is in no later epoch. HVD_ERR_LAUNCH: the job is over. */
HVD_EXPORT hvd_status_t hvd_reset(const hvd_init_options_t* options, hvd_epoch_t* epoch);
/* All ranks call it: HVD_OK, or HVD_ERR_HOSTS_UPDATED on all of them. Costs a small allreduce. */
HVD_EXPORT hvd_status_t hvd_check_hosts(void);
/* Which share of its host this process has (cores, GPUs): the same for the process's life, whatever
 * its rank; a member that replaces another has its share. -1 before hvd_init; 0 without a
 * launcher. */
HVD_EXPORT int32_t hvd_slot(void);
/* 1 in an elastic job, else 0. Before hvd_init it asks the launcher's daemon, for which this
 * process is the rank from then on. */
HVD_EXPORT int32_t hvd_is_elastic(void);

typedef struct hvd_state_t hvd_state_t;
typedef enum hvd_state_kind_t {
  HVD_STATE_REPLICATED = 0, /* the same bits on all ranks; each rank of a host copies a part */
  HVD_STATE_FIRST = 1,      /* that of the host's first rank is kept, and counts */
  HVD_STATE_PRIVATE = 2     /* each rank's own, by its share of the host; never sent to others */
} hvd_state_kind_t;

/* Threads: any, one call at a time: others wait. At most one state in a process
 * (HVD_ERR_UNSUPPORTED). It may be made before hvd_init, and lives until hvd_state_destroy, also
 * across hvd_reset. */
HVD_EXPORT hvd_status_t hvd_state_create(hvd_state_t** state);
/* The memory stays the caller's, and must be there until it is removed, or replaced by adding the
 * name again. Names have 1 to 4095 bytes; a name that hvd_state_put has is HVD_ERR_INVALID. `kind`
 * is a hvd_state_kind_t. Replicated tensors are the same on all ranks: names, shapes and dtypes
 * (see hvd_state_commit). Adding copies nothing: a tensor that is held under this name
 * (hvd_state_entry) is freed, so copy it first. On a GPU a commit comes after what is on the
 * tensor's stream, and what is written into a tensor is there when the call returns. */
HVD_EXPORT hvd_status_t hvd_state_add(hvd_state_t* state, const char* name,
                                      const hvd_tensor_t* tensor, int32_t kind);
/* Removes a tensor, held or not, or bytes. HVD_ERR_INVALID: there is none of this name. */
HVD_EXPORT hvd_status_t hvd_state_remove(hvd_state_t* state, const char* name);
/* Bytes under a name, copied; they replace those before. A commit keeps the bytes of a host's first
 * rank, a sync sends the root's. */
HVD_EXPORT hvd_status_t hvd_state_put(hvd_state_t* state, const char* name, const void* data,
                                      size_t bytes);
/* *data is NULL and *bytes 0 when there are none; else valid until the name is put or removed, or
 * the next hvd_state_restore or hvd_state_sync. */
HVD_EXPORT hvd_status_t hvd_state_get(const hvd_state_t* state, const char* name, const void** data,
                                      size_t* bytes);
/* All ranks call it at the same point. HVD_OK: commit *number (may be NULL) is complete on every
 * host. HVD_ERR_HOSTS_UPDATED: so it is, and the members are to change. HVD_ERR_ABORTED: the epoch
 * has broken; this commit may or may not count, the one before stays. HVD_ERR_MISMATCH, on all
 * ranks: replicated tensors differ, or some ranks do something else; this commit does not count.
 * HVD_ERR_UNSUPPORTED, on the ranks that it concerns, HVD_ERR_MISMATCH on the others: there is no
 * memory for it. Memory for two commits is taken at first, and kept. */
HVD_EXPORT hvd_status_t hvd_state_commit(hvd_state_t* state, uint64_t* number);
/* As hvd_state_commit, of what a sync has made of the state: the program has got no further by it.
 * hvdrun gives up a job whose ranks fail again and again while it does not get on; so whatever
 * commits in every epoch, and not for a step that is done, calls this one. All ranks do. */
HVD_EXPORT hvd_status_t hvd_state_keep(hvd_state_t* state, uint64_t* number);
/* This rank alone: the newest commit of its host that is complete everywhere, into the tensors.
 * HVD_ERR_INVALID when there is none, or when it has other shapes or dtypes than what was added:
 * nothing has changed then. HVD_ERR_NOT_INITIALIZED outside an epoch of an elastic job. Tensors
 * that it has and that nobody has added are held. *number may be NULL. */
HVD_EXPORT hvd_status_t hvd_state_restore(hvd_state_t* state, uint64_t* number);
/* All ranks call it, after hvd_init and after every hvd_reset: whatever the epoch wants (see
 * hvd_epoch_t). Ranks that have the commit go back to it if the epoch before broke; ranks that need
 * the root's state get it; then, if there were any, all commit. In a job that is not elastic all
 * ranks get rank 0's. Errors as of hvd_state_commit, and HVD_ERR_MISMATCH where the root's tensors
 * are not as what was added here. After an error what the tensors hold is undefined until a sync
 * succeeds: after HVD_ERR_ABORTED and hvd_reset it brings the right state to all. */
HVD_EXPORT hvd_status_t hvd_state_sync(hvd_state_t* state);
/* How many tensors there are, added or held. */
HVD_EXPORT hvd_status_t hvd_state_count(const hvd_state_t* state, int32_t* count);
typedef struct hvd_state_entry_t {
  size_t struct_size;
  const char* name;
  hvd_tensor_t tensor;
  int32_t kind; /* hvd_state_kind_t */
  /* 1: restored or synced, and not added (yet): hvd owns tensor.data, until the name is added or
   * removed, or the next hvd_state_restore or hvd_state_sync. */
  int32_t held;
} hvd_state_entry_t;
#define HVD_STATE_ENTRY_INIT \
  { sizeof(hvd_state_entry_t), NULL, HVD_TENSOR_INIT, HVD_STATE_REPLICATED, 0 }
/* `index` counts from 0, by name. The strings, shapes and data are valid as long as the entry is.
 */
HVD_EXPORT hvd_status_t hvd_state_entry(const hvd_state_t* state, int32_t index,
                                        hvd_state_entry_t* entry);
/* NULL does nothing. Waits for a call of another thread. The commits that hosts keep stay. */
HVD_EXPORT void hvd_state_destroy(hvd_state_t* state);

/* ---- the job's key-value store: for small agreements of a program's own ----
 *
 * Keys and values that every process of the job sees, on all hosts; it lies in hvdrun, needs no
 * port, and ends with the job. Works before hvd_init, after hvd_shutdown and without either: who
 * asks takes part in nothing else. Without a launcher the process has a store of its own.
 *
 * Any thread may call, several at once: 256 calls of a rank under way, so as many threads that wait
 * (HVD_ERR_UNSUPPORTED beyond). A process that the rank itself has started by exec with its
 * environment may, too, and counts; the child of a fork of one that has used hvd may not
 * (HVD_ERR_NOT_INITIALIZED). The calls of one thread happen in its order; every
 * change is one step for all.
 *
 * Keys are text of 1 to 4096 bytes, values any bytes up to 16 MiB (HVD_ERR_INVALID names the
 * limit); all of a job's keys and values together have 256 MiB, where a key costs 128 bytes besides
 * (HVD_ERR_UNSUPPORTED names it, and how much is taken).
 *
 * timeout_s: 0 does not wait; INFINITY waits until the job ends. HVD_ERR_TIMEOUT names the keys
 * that nobody has set. A call that is under way when the job is stopped, or waits when this host's
 * epoch is broken, ends with HVD_ERR_ABORTED: hvd_last_error names the cause. HVD_ERR_LAUNCH:
 * hvdrun's daemon on this host is gone, or does not take this process for one of the job's. */

/* Bytes: of the caller's where they are given, the library's where they are got: those are given
 * back by hvd_store_free. data NULL: none, which is not the same as an empty value. */
typedef struct hvd_store_value_t {
  void* data;
  size_t bytes;
} hvd_store_value_t;

/* `value` may be NULL when bytes is 0. */
HVD_EXPORT hvd_status_t hvd_store_set(const char* key, const void* value, size_t bytes);
/* Waits until the key is there. */
HVD_EXPORT hvd_status_t hvd_store_get(const char* key, double timeout_s, hvd_store_value_t* value);
/* Adds to a number in decimal text; a key that is not there counts as 0. *sum (may be NULL) gets
 * the new one. HVD_ERR_INVALID: the value is no such number, or the sum does not fit. */
HVD_EXPORT hvd_status_t hvd_store_add(const char* key, int64_t delta, int64_t* sum);
/* Sets the key to `desired` if it is as `expected`: of several that ask, one wins. A key that is
 * not there counts as empty; so does expected NULL. *now gets what is there afterwards: who finds
 * `desired` may have won; data is NULL where the key is still not there. */
HVD_EXPORT hvd_status_t hvd_store_compare_set(const char* key, const hvd_store_value_t* expected,
                                              const hvd_store_value_t* desired,
                                              hvd_store_value_t* now);
/* *existed (may be NULL): 1 or 0. */
HVD_EXPORT hvd_status_t hvd_store_delete(const char* key, int32_t* existed);
/* How many keys there are. */
HVD_EXPORT hvd_status_t hvd_store_count(int64_t* count);
/* Waits until all of `count` keys are there at one time. The keys of one call have 1 MiB at most.
 */
HVD_EXPORT hvd_status_t hvd_store_wait(const char* const* keys, int32_t count, double timeout_s);
/* Leaves *value empty; NULL and an empty one do nothing. */
HVD_EXPORT void hvd_store_free(hvd_store_value_t* value);

/* A get or a wait that the caller looks at now and then, because it has signals, or anything else,
 * to look at meanwhile. One thread at a time uses it; hvd_store_end ends it. */
typedef struct hvd_store_call_t hvd_store_call_t;
HVD_EXPORT hvd_status_t hvd_store_begin_get(const char* key, double timeout_s,
                                            hvd_store_call_t** call);
HVD_EXPORT hvd_status_t hvd_store_begin_wait(const char* const* keys, int32_t count,
                                             double timeout_s, hvd_store_call_t** call);
/* Waits for its end, `microseconds` at most. *done becomes 1 when it is there, however it went:
 * hvd_store_end says how. */
HVD_EXPORT hvd_status_t hvd_store_wait_for(hvd_store_call_t* call, int64_t microseconds,
                                           int32_t* done);
/* Frees the call and returns how it went, a get's value in *value (may be NULL). One that is not
 * done is given up: HVD_ERR_TIMEOUT. NULL: HVD_ERR_INVALID. */
HVD_EXPORT hvd_status_t hvd_store_end(hvd_store_call_t* call, hvd_store_value_t* value);

/* ---- errors ----
 *
 * Each thread has its own last message. A call that succeeds leaves it as it was. */

/* The calling thread's last message; never NULL; valid until its next failing call. */
HVD_EXPORT const char* hvd_last_error(void);
/* The facts of that message, for programs. The strings are never NULL, and valid as long. */
typedef struct hvd_error_info_t {
  size_t struct_size;
  int32_t code;        /* hvd_status_t of the last failing call; HVD_OK: none has failed */
  int32_t rank;        /* HVD_ERR_ABORTED: whose end or fault is the cause; -1: not known */
  const char* host;    /* where that rank is; "" */
  const char* name;    /* of the collective that failed, as the caller gave it; "" */
  const char* message; /* hvd_last_error() */
} hvd_error_info_t;
#define HVD_ERROR_INFO_INIT \
  { sizeof(hvd_error_info_t), HVD_OK, -1, "", "", "" }
/* Fills *info, whose struct_size is set. HVD_ERR_INVALID, and no new message, when it is NULL or of
 * another size. */
HVD_EXPORT hvd_status_t hvd_last_error_info(hvd_error_info_t* info);
HVD_EXPORT const char* hvd_status_name(hvd_status_t status); /* "HVD_ERR_MISMATCH" */
HVD_EXPORT const char* hvd_version(void);                    /* "0.1.0" */
/* One line a capability, "name=value\n": which transports, GPU libraries and kernels were found;
 * for hvdrun --check-build. Needs no hvd_init. Valid for the process's life. */
HVD_EXPORT const char* hvd_build_info(void);

#ifdef __cplusplus
}
#endif
#endif /* HVD_HVD_H_ */
