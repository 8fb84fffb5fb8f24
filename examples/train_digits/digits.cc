// SPDX-License-Identifier: Apache-2.0
#include "examples/train_digits/digits.h"

#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

namespace digits {
namespace {

constexpr float kWhitest = 16;

// A place in the file, for messages.
struct Line {
  const std::string& path;
  int number;
  std::string_view text;
};

[[noreturn]] void Fail(const Line& line, size_t column, const std::string& what) {
  throw DataError(line.path + ":" + std::to_string(line.number) + ":" + std::to_string(column + 1) +
                  ": " + what + "\n  " + std::string(line.text) + "\n  " +
                  std::string(column, ' ') + "^");
}

// Takes one number between 0 and `limit` from the line at *at, and the comma behind it.
int TakeNumber(const Line& line, size_t* at, int limit) {
  const char* const end = line.text.data() + line.text.size();
  int value = 0;
  const auto [stop, error] = std::from_chars(line.text.data() + *at, end, value);
  if (error != std::errc() || value < 0 || value > limit) {
    Fail(line, *at, "expected a number from 0 to " + std::to_string(limit));
  }
  *at = static_cast<size_t>(stop - line.text.data());
  if (stop != end && *stop == ',') ++*at;
  return value;
}

Image Parse(const Line& line) {
  Image image;
  size_t at = 0;
  for (float& pixel : image.pixels) {
    pixel = static_cast<float>(TakeNumber(line, &at, static_cast<int>(kWhitest))) / kWhitest;
  }
  image.label = TakeNumber(line, &at, static_cast<int>(kClasses) - 1);
  if (at != line.text.size())
    Fail(line, at, "expected the end of the line after 64 pixels and a label");
  return image;
}

std::vector<Image> ReadAll(const std::string& path) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file) throw DataError(path + ": " + std::strerror(errno) + "; name the digits with --data");
  std::vector<Image> images;
  char buffer[1024];
  for (int number = 1; gzgets(file.get(), buffer, sizeof buffer) != nullptr; ++number) {
    std::string_view text = buffer;
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    if (!text.empty()) images.push_back(Parse({path, number, text}));
  }
  int error = Z_OK;
  const char* const message = gzerror(file.get(), &error);
  if (error != Z_OK) throw DataError(path + ": " + message);
  return images;
}

}  // namespace

std::vector<uint32_t> Shuffled(size_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  // By hand, since std::shuffle may differ from one standard library to the next.
  std::mt19937_64 random(seed);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

Digits Read(const std::string& path, uint64_t seed) {
  const std::vector<Image> all = ReadAll(path);
  if (all.size() < 10) throw DataError(path + ": too few digits to train and to test on");
  Digits digits;
  const std::vector<uint32_t> order = Shuffled(all.size(), seed);
  for (size_t i = 0; i < order.size(); ++i) {
    (i < all.size() / 5 ? digits.test : digits.train).push_back(all[order[i]]);
  }
  return digits;
}

std::string DefaultPath() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto in_source = here / "../../examples/data/digits.csv.gz";
  const auto installed = here / "../share/hvd/digits.csv.gz";
  return (std::filesystem::exists(in_source) ? in_source : installed).lexically_normal().string();
}

}  // namespace digits
