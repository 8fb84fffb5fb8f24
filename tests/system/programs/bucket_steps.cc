// SPDX-License-Identifier: Apache-2.0
// bucket_steps MODE: the steps of a bucket, on all ranks.
//   given-up    some ranks give a step up in the middle; the next is whole
//   single      single tensors are waited for before others are ready, in opposite orders
//   copied      gradients of other float types are copied in
//   differs     a wait for a single tensor says that the ranks have made the bucket otherwise
#include <atomic>
#include <thread>

#include "tests/system/programs/checks.h"

namespace {

void Need(bool holds, const char* what) {
  if (!holds) Fail(std::string(what) + " (" + hvd_last_error() + ")");
}
void Ok(hvd_status_t status, const char* what) { Need(status == HVD_OK, what); }

hvd::GradientOptions Sums(const char* name) {
  hvd::GradientOptions options;
  options.name = name;
  options.op = hvd::Op::kSum;
  options.chunk_bytes = 4096;
  return options;
}

constexpr int32_t kViews = 6;

// Makes the first so many ready, with ones.
void MakeReady(hvd_bucket_t* bucket, const std::vector<int64_t>& counts, int32_t tensors) {
  for (int32_t i = 0; i < tensors; ++i) {
    void* view = nullptr;
    Ok(hvd_bucket_view(bucket, i, &view), "bucket_view");
    std::fill_n(static_cast<float*>(view), counts[i], 1.0f);
    Ok(hvd_bucket_ready(bucket, i), "bucket_ready");
  }
}

void GivenUp() {
  const std::vector<int64_t> counts = {5, 1000, 7, 40000, 3, 2};
  hvd_options_t reduction = HVD_OPTIONS_INIT;
  reduction.op = HVD_SUM;
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.reduction = &reduction;
  options.chunk_bytes = 4096;
  hvd_bucket_t* bucket = nullptr;
  Ok(hvd_bucket_create(counts.data(), kViews, &options, &bucket), "bucket_create");
  Ok(hvd_bucket_reset(bucket), "reset of a step that has not begun");
  for (int32_t ready = 1; ready < kViews; ++ready) {
    // Rank 1 gives up after so many, rank 2 after another number, the others have all.
    const int32_t mine[] = {kViews, ready, kViews - ready};
    MakeReady(bucket, counts, mine[hvd_rank() % 3]);
    if (hvd_rank() % 3 == 0) {
      Ok(hvd_bucket_wait(bucket), "wait beside those who give up");
    } else {
      Need(hvd_bucket_wait(bucket) == HVD_ERR_INVALID, "waits for what is not ready");
      Ok(hvd_bucket_reset(bucket), "bucket_reset");
    }
    MakeReady(bucket, counts, kViews);
    Ok(hvd_bucket_wait(bucket), "the next step");
    for (int32_t i = 0; i < kViews; ++i) {
      void* view = nullptr;
      Ok(hvd_bucket_view(bucket, i, &view), "bucket_view");
      for (int64_t k = 0; k < counts[i]; ++k) {
        Need(static_cast<float*>(view)[k] == static_cast<float>(hvd_size()), "a wrong sum");
      }
    }
  }
  hvd_bucket_destroy(bucket);
}

const std::vector<size_t> kCounts = {50, 1100, 7, 40000, 3, 2, 30000, 12};

void CheckSum(const hvd::Gradients<float>& gradients, size_t i) {
  const auto wanted = static_cast<float>(hvd::size()) * static_cast<float>(i + 1);
  for (size_t k = 0; k < kCounts[i]; ++k) Need(gradients[i][k] == wanted, "a wrong sum");
}

bool IsRefused(hvd::Gradients<float>* gradients, size_t i) {
  try {
    gradients->wait(i);
  } catch (const hvd::Error& error) {
    return error.code() == HVD_ERR_INVALID;
  }
  return false;
}

// Each tensor is waited for as soon as it is ready, by two threads, while later ones are not.
void Single() {
  hvd::Gradients<float> gradients(kCounts, Sums("single"));
  const auto ready = [&](size_t i) {
    std::fill_n(gradients[i], kCounts[i], static_cast<float>(i + 1));
    gradients.ready(i);
  };
  for (int step = 0; step < 20; ++step) {
    Need(IsRefused(&gradients, 3), "waits for what is not ready");
    for (const size_t i : {3, 1, 6}) {
      ready(i);
      std::thread beside([&] { gradients.wait(i); });
      gradients.wait(i);
      beside.join();
      CheckSum(gradients, i);
      gradients[i][0] = -1;  // is the caller's again
    }
    for (const size_t i : {7, 5, 4, 2, 0}) ready(i);
    while (!gradients.wait_for(std::chrono::microseconds(1000))) {
    }
    for (const size_t i : {0, 4, 5}) gradients.wait(i);
    gradients.wait();
    for (const size_t i : {0, 2, 4, 5, 7}) CheckSum(gradients, i);
    Need(gradients[3][0] == -1 && gradients[3][1] == 4.0f * static_cast<float>(hvd::size()),
         "the end of the step has changed what was reduced before");
  }
}

template <class From>
std::vector<From> Ones(size_t count) {
  return std::vector<From>(count, From(1));
}
template <>
std::vector<hvd::bfloat16> Ones(size_t count) {
  return std::vector<hvd::bfloat16>(count, hvd::bfloat16{0x3f80});
}
template <>
std::vector<hvd::float16> Ones(size_t count) {
  return std::vector<hvd::float16>(count, hvd::float16{0x3c00});
}

template <class From>
void CheckCopied(const char* name) {
  hvd::Gradients<float> gradients({5000, 3}, Sums(name));
  for (int step = 0; step < 3; ++step) {
    gradients.put(1, Ones<From>(3).data(), 3);
    gradients.put(0, Ones<From>(5000).data(), 5000);
    gradients.wait();
    Need(gradients[0][4999] == static_cast<float>(hvd::size()), "a wrong sum of what was copied");
    Need(gradients[1][2] == static_cast<float>(hvd::size()), "a wrong sum of what was copied");
  }
}

// Ranks with differing buckets; `wait` of one tensor must not wait for what never comes.
void Differs() {
  std::vector<size_t> counts = {2000, 3000, 4000};
  if (hvd::rank() == 0) counts.push_back(5000);
  hvd::Gradients<float> gradients(counts, Sums("differs"));
  for (size_t i = counts.size(); i-- > 0;) gradients.ready(i);
  for (size_t i = counts.size(); i-- > 0;) {
    try {
      gradients.wait(i);
      Need(hvd::size() == 1, "no mismatch");
    } catch (const hvd::Error& error) {
      Need(error.code() == HVD_ERR_MISMATCH, error.what());
    }
  }
  try {
    while (!gradients.wait_for(std::chrono::microseconds(1000))) {
    }
    gradients.wait();
    Need(hvd::size() == 1, "no mismatch at the end");
  } catch (const hvd::Error& error) {
    Need(error.code() == HVD_ERR_MISMATCH, error.what());
  }
  CheckCopied<float>("after it");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string mode = argv[1];
  hvd::Session session;
  if (mode == "given-up") GivenUp();
  if (mode == "single") Single();
  if (mode == "differs") Differs();
  if (mode == "copied") {
    CheckCopied<float>("float32");
    CheckCopied<double>("float64");
    CheckCopied<hvd::bfloat16>("bfloat16");
    CheckCopied<hvd::float16>("float16");
  }
  return 0;
}
