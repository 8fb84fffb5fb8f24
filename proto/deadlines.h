// SPDX-License-Identifier: Apache-2.0
// How long the programs wait for one another when a job ends. Each of them stands in for the one
// below it, should that be stuck: so each waits longer than the one below it needs. These times lie
// together because a change of one is a change of the order.
#pragma once

#include <chrono>

namespace hvd {

// ---- A stop: seconds after it was asked for, `grace` being --grace ----
//
//   0            hvdd     TERM to every rank
//   grace        hvdd     KILL to all that is left
//   grace + 0.9  hvdd     has its shim count what lives even now, as nothing can kill it, and says
//                         Stopped
//   grace + 1.2  hvdd     kills a shim that does not answer, and what it held
//   grace + 1.5  spawner  kills hvdd, where the driver is gone and hvdd is not
//   grace + 2    shim     kills everything, where hvdd has begun the stop and does not end it
//   grace + 3    driver   leaves the host, of which no Stopped has come
inline constexpr double kDefaultGraceS = 5;

// After KILL. A killed process is gone within milliseconds unless the kernel holds it in D state.
inline constexpr std::chrono::milliseconds kKillPatience{900};
// The shim, asked what still lives. It has one thread, which waits for nothing else.
inline constexpr std::chrono::milliseconds kCountPatience{300};
// Beyond the grace, each of them.
inline constexpr std::chrono::milliseconds kSpawnerMargin{1500};
inline constexpr std::chrono::milliseconds kShimMargin{2000};
inline constexpr std::chrono::milliseconds kHostMargin{3000};

static_assert(kKillPatience + kCountPatience < kSpawnerMargin,
              "the spawner would cut off hvdd's own stop");
static_assert(kKillPatience + kCountPatience < kShimMargin, "the shim would cut off hvdd's stop");
static_assert(kShimMargin < kHostMargin, "the driver would leave ranks that the shim still ends");

// Stopped waits for the end of each rank's output, which comes after the rank's own end.
// hvdd: a descendant holds a dead rank's pipe and says nothing.
inline constexpr std::chrono::milliseconds kPipePatience{1000};
// hvdd: for the file system to take the end of a rank's file. Then it says that the end is missing.
inline constexpr std::chrono::milliseconds kFilePatience{8000};
// … when the job is being stopped.
inline constexpr std::chrono::milliseconds kStoppedFilePatience{1500};
// hvdd: for what is still under way to files, as the last thing that it does.
inline constexpr std::chrono::milliseconds kLastFilePatience{2000};

static_assert(kKillPatience + kStoppedFilePatience < kHostMargin,
              "a file's word would be too late");
static_assert(kPipePatience + kStoppedFilePatience < kHostMargin,
              "a file's word would be too late");
static_assert(kStoppedFilePatience <= kLastFilePatience, "a file would get less time at the end");

// hvdd, asked to leave by a signal or without a lease: after Stopped, for the driver to hear it and
// end the link.
inline constexpr std::chrono::milliseconds kLeavePatience{1000};
// hvdd: for the shim to end with all that it holds, or for its own sweep where the shim is lost.
inline constexpr std::chrono::milliseconds kShimEndPatience{900};
// The shim, at the very end: for the D state. Nobody waits for it any more.
inline constexpr std::chrono::milliseconds kLastKillPatience{5000};

// hvdd: for a shim that it has killed. The kernel may hold what dies with it.
inline constexpr std::chrono::milliseconds kKilledShimPatience{300};
// hvdd: for its shim to take what it is asked. One that is stopped is continued first.
inline constexpr std::chrono::milliseconds kAskPatience{1000};

static_assert(kShimEndPatience < kLastKillPatience, "the shim would give up while hvdd waits");
static_assert(kKillPatience + kCountPatience + kKilledShimPatience + kShimEndPatience < kHostMargin,
              "the driver would leave a host that still kills its shim");

// ---- Silence: seconds after the last beat that counts was sent, `lease` being --lease ----
//
//   lease         hvdd     stops its ranks
//   lease + 0.25  shim     kills everything, where hvdd is paused
//   lease + 0.5   driver   gives the host up
//   lease + 1     console  continues a driver that was stopped: its hosts have given it up
//   lease + 1     kernel   continues an hvdd that was stopped: it has lost its ranks, and ends.
//                          A shim that was stopped is continued when its own lease has ended
inline constexpr double kDefaultLeaseS = 10;
inline constexpr double kElasticLeaseS = 3;  // where members may be replaced

// Beyond the lease, each of them.
inline constexpr std::chrono::milliseconds kShimLeaseMargin{250};
inline constexpr std::chrono::milliseconds kHostLeaseMargin{500};
inline constexpr std::chrono::milliseconds kStoppedDriverMargin{1000};
inline constexpr std::chrono::milliseconds kStoppedDaemonMargin{1000};

static_assert(kShimLeaseMargin.count() > 0, "the shim would be before an hvdd that is awake");
static_assert(kShimLeaseMargin < kHostLeaseMargin, "the driver would count on ranks to be gone");
static_assert(kShimLeaseMargin < kStoppedDriverMargin, "its hosts might still hear the driver");
static_assert(kHostLeaseMargin < kStoppedDaemonMargin, "an hvdd that comes back might be heard");

// ---- What the driver waits for before it judges ----
//
// After the first host that cannot start: for the same fault on others.
inline constexpr std::chrono::milliseconds kFaultSettling{200};
// After this long, a stop is announced.
inline constexpr std::chrono::milliseconds kTellAfter{300};

static_assert(kFaultSettling < kTellAfter, "each failed start would announce a stop");

}  // namespace hvd
