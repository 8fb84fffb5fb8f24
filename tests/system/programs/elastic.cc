// SPDX-License-Identifier: Apache-2.0
// elastic: a training run whose members come and go. Its state is known in closed form: after step
// s every weight is s, whoever took part. A step that is lost, mixed or counted twice is therefore
// seen at once.
//
// Says, a line each: who it is in each epoch, commits that have returned, how long a break took.
// It ends after --steps, or once the file --until is there.
#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/system/programs/checks.h"

namespace {

struct Options {
  size_t megabytes = 1;
  int64_t steps = 1000000;
  int64_t commit_every = 5;
  int64_t check_every = 0;  // hvd_check_hosts; 0: commits say it
  std::string until;
  bool child = false;         // one that holds our output, in a session of its own
  int64_t raises_at = -1;     // this step ends the process with code 7 …
  int raises_slot = -1;       // … in this slot alone; -1: in all
  double forward_s = 0;       // a step's own work
  std::string forward_while;  // slot 0 works on one step until this file is gone
  bool shows_commits = false;
  std::string fails_on;  // on this host a process leaves before its first sync, with code 9
};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One line, however many ranks write at once.
void Say(const std::string& text) {
  const std::string line = text + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(3);
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

void HoldOutput() {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  for (;;) pause();
}

class Training {
 public:
  explicit Training(Options options)
      : options_(std::move(options)), weights_(options_.megabytes * (1 << 20) / sizeof(float)) {}

  int Run() {
    Must(hvd_init(nullptr), "hvd_init");
    Must(hvd_state_create(&state_), "hvd_state_create");
    const int64_t count = static_cast<int64_t>(weights_.size()), one = 1;
    Add("weights", weights_.data(), &count, HVD_FLOAT32);
    Add("step", &step_, &one, HVD_INT64);
    Must(hvd_epoch(&epoch_), "hvd_epoch");
    Began();
    if (options_.fails_on == HostName()) return FailStart();
    for (;;) {
      hvd_status_t status = hvd_state_sync(state_);
      if (status == HVD_OK) {
        CheckState();
        status = Train();
      }
      if (status == HVD_OK) return Done();
      if (!Reset(status)) return 0;
    }
  }

 private:
  void Add(const char* name, void* data, const int64_t* count, int32_t dtype) {
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = data;
    tensor.shape = count;
    tensor.ndim = 1;
    tensor.dtype = dtype;
    Must(hvd_state_add(state_, name, &tensor, HVD_STATE_REPLICATED), "hvd_state_add");
  }

  void Began() const {
    Say("epoch " + std::to_string(epoch_.number) + " rank " + std::to_string(epoch_.rank) +
        " size " + std::to_string(epoch_.size) + " pid " + std::to_string(getpid()) + " slot " +
        std::to_string(hvd_slot()) + " new " + std::to_string(epoch_.is_new) + " commit " +
        std::to_string(epoch_.commit) + " back " + std::to_string(epoch_.rolls_back) + " host " +
        HostName());
    if (epoch_.commit < returned_) {
      Fail("LOST COMMIT " + std::to_string(returned_) + ": the job goes on from " +
           std::to_string(epoch_.commit));
    }
    if (epoch_.rank != hvd_rank() || epoch_.size != hvd_size()) Fail("hvd_epoch is not hvd_rank");
  }

  // As a program does that has not found its data there.
  static int FailStart() {
    Must(hvd_shutdown(), "hvd_shutdown");
    return 9;
  }

  // False: this process has been removed.
  bool Reset(hvd_status_t status) {
    if (status != HVD_ERR_ABORTED && status != HVD_ERR_HOSTS_UPDATED) Must(status, "training");
    planned_ = status == HVD_ERR_HOSTS_UPDATED;
    before_ = step_;
    Say((planned_ ? "change: " : "broken: ") + std::string(hvd_last_error()));
    const hvd_status_t reset = hvd_reset(nullptr, &epoch_);
    if (reset == HVD_ERR_REMOVED) {
      Say("removed pid " + std::to_string(getpid()));
      return false;
    }
    Must(reset, "hvd_reset");
    Began();
    if (planned_ && epoch_.rolls_back) planned_ = false;
    resumes_ = true;
    return true;
  }

  void CheckState() {
    const auto wrong = std::find_if(weights_.begin(), weights_.end(), [this](float weight) {
      return weight != static_cast<float>(step_);
    });
    if (wrong != weights_.end()) {
      Fail("STATE DIFFERS: step " + std::to_string(step_) + ", weight " +
           std::to_string(wrong - weights_.begin()) + " is " + std::to_string(*wrong));
    }
    if (planned_ && step_ != before_) {
      Fail("STEP LOST by a planned change: " + std::to_string(before_) + " before, " +
           std::to_string(step_) + " now");
    }
    planned_ = false;
    int64_t low = step_, high = -step_;
    if (Smallest(&low) == HVD_OK && Smallest(&high) == HVD_OK && low != -high) {
      Fail("STATE DIFFERS: steps " + std::to_string(low) + " to " + std::to_string(-high));
    }
  }

  static hvd_status_t Smallest(int64_t* value) {
    const int64_t one = 1;
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = value;
    tensor.shape = &one;
    tensor.ndim = 1;
    tensor.dtype = HVD_INT64;
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.op = HVD_MIN;
    return hvd_allreduce(&tensor, &tensor, &options);
  }

  hvd_status_t Train() {
    while (step_ < options_.steps) {
      Work();
      bool ends = false;
      hvd_status_t status = Step(&ends);
      if (status != HVD_OK) return status;
      if (ends) return HVD_OK;
      if (options_.check_every > 0 && step_ % options_.check_every == 0) {
        status = hvd_check_hosts();
        if (status != HVD_OK) return status;
      }
      if (step_ % options_.commit_every == 0) {
        status = Commit();
        if (status != HVD_OK) return status;
      }
    }
    return HVD_OK;
  }

  void Work() const {
    const bool mine = options_.raises_slot < 0 || options_.raises_slot == hvd_slot();
    if (step_ == options_.raises_at && mine) {
      std::fprintf(stderr, "a fault of the program's own at step %ld\n", static_cast<long>(step_));
      std::exit(7);
    }
    if (options_.forward_s > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.forward_s));
    }
    while (!options_.forward_while.empty() && hvd_slot() == 0 && epoch_.rank == 0 &&
           access(options_.forward_while.c_str(), F_OK) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  // All ranks see in the same step that the run is to end.
  hvd_status_t Step(bool* ends) {
    std::vector<float> gradient(16384, 1);
    gradient[0] = !options_.until.empty() && access(options_.until.c_str(), F_OK) == 0 ? 1 : 0;
    const int64_t count = static_cast<int64_t>(gradient.size());
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = gradient.data();
    tensor.shape = &count;
    tensor.ndim = 1;
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = "gradient";
    const hvd_status_t status = hvd_allreduce(&tensor, &tensor, &options);
    if (status != HVD_OK) return status;
    const int64_t now = NowNs();
    if (resumes_) {
      Say("resumed rank " + std::to_string(epoch_.rank) + " epoch " +
          std::to_string(epoch_.number) + " after_us " +
          std::to_string(last_result_ns_ == 0 ? 0 : (now - last_result_ns_) / 1000));
    }
    resumes_ = false;
    last_result_ns_ = now;
    *ends = gradient[0] > 0;
    if (*ends) return HVD_OK;
    for (float& weight : weights_) weight += gradient[1];
    ++step_;
    return HVD_OK;
  }

  hvd_status_t Commit() {
    uint64_t number = 0;
    const hvd_status_t status = hvd_state_commit(state_, &number);
    if (status != HVD_OK && status != HVD_ERR_HOSTS_UPDATED) return status;
    if (number <= returned_) Fail("commit " + std::to_string(number) + " comes twice");
    returned_ = number;
    if (options_.shows_commits) {
      Say("commit " + std::to_string(number) + " step " + std::to_string(step_));
    }
    return status;
  }

  int Done() {
    if (!std::all_of(weights_.begin(), weights_.end(),
                     [this](float weight) { return weight == static_cast<float>(step_); })) {
      Fail("STATE DIFFERS at the end");
    }
    Say("done rank " + std::to_string(epoch_.rank) + " step " + std::to_string(step_));
    hvd_state_destroy(state_);
    Must(hvd_shutdown(), "hvd_shutdown");
    return 0;
  }

  const Options options_;
  std::vector<float> weights_;
  int64_t step_ = 0;
  hvd_state_t* state_ = nullptr;
  hvd_epoch_t epoch_ = HVD_EPOCH_INIT;
  uint64_t returned_ = 0;  // the newest commit that has returned here
  bool planned_ = false;   // the last change was one that loses no step
  int64_t before_ = 0;     // the step before it
  bool resumes_ = true;    // until the next result
  int64_t last_result_ns_ = 0;
};

Options ReadOptions(int argc, char** argv) {
  static const option kNames[] = {
      {"mb", 1, nullptr, 'm'},           {"steps", 1, nullptr, 's'},
      {"commit-every", 1, nullptr, 'c'}, {"check-every", 1, nullptr, 'k'},
      {"until", 1, nullptr, 'u'},        {"child", 0, nullptr, 'd'},
      {"raise-at", 1, nullptr, 'r'},     {"raise-slot", 1, nullptr, 'l'},
      {"forward", 1, nullptr, 'f'},      {"forward-while", 1, nullptr, 'w'},
      {"show-commits", 0, nullptr, 'v'}, {"fails-on", 1, nullptr, 'o'},
      {nullptr, 0, nullptr, 0}};
  Options options;
  for (int key; (key = getopt_long(argc, argv, "", kNames, nullptr)) != -1;) {
    if (key == 'm') options.megabytes = std::strtoul(optarg, nullptr, 10);
    if (key == 's') options.steps = std::atol(optarg);
    if (key == 'c') options.commit_every = std::atol(optarg);
    if (key == 'k') options.check_every = std::atol(optarg);
    if (key == 'u') options.until = optarg;
    if (key == 'd') options.child = true;
    if (key == 'r') options.raises_at = std::atol(optarg);
    if (key == 'l') options.raises_slot = std::atoi(optarg);
    if (key == 'f') options.forward_s = std::atof(optarg);
    if (key == 'w') options.forward_while = optarg;
    if (key == 'v') options.shows_commits = true;
    if (key == 'o') options.fails_on = optarg;
    if (key == '?') std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ReadOptions(argc, argv);
  if (options.child) HoldOutput();
  return Training(options).Run();
}
