// SPDX-License-Identifier: Apache-2.0
#include "watch/sample_places.hpp"

#include <algorithm>
#include <numeric>

namespace millrace::preprocess {
namespace {

// Returns a permutation of [0, count). Its steps are about 0.618 (golden ratio) times `count`, so
// that the first few indices are far apart.
std::vector<std::size_t> jumping_order(std::size_t count) {
  std::size_t step = std::max<std::size_t>(1, count * 618 / 1000);
  while (std::gcd(step, count) != 1) ++step;
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i * step % count;
  return order;
}

// Returns the end offset of each file in the concatenation of all files.
std::vector<std::uint64_t> ends_of(std::span<const std::uint64_t> sizes) {
  std::vector<std::uint64_t> ends(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
  return ends;
}

// Returns the index of the file that contains byte `at`, which must be less than the last of
// `ends`.
std::size_t file_at(const std::vector<std::uint64_t>& ends, std::uint64_t at) {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
}

// Returns the middle of part `i` of `count` equal parts. Avoids products that could overflow.
std::uint64_t middle_of_part(std::uint64_t total, std::size_t i, std::size_t count) {
  return total / count * i + total % count * i / count + total / count / 2;
}

sample_place place_at(const std::vector<std::uint64_t>& ends, std::uint64_t begin,
                      std::uint64_t end) {
  sample_place place;
  for (std::size_t file = file_at(ends, begin); begin < end; ++file) {
    const std::uint64_t start = file == 0 ? 0 : ends[file - 1];
    const std::uint64_t stop = std::min(end, ends[file]);
    if (begin < stop) place.push_back({file, begin - start, stop - start});
    begin = stop;
  }
  return place;
}

}  // namespace

std::vector<sample_place> sample_places(std::span<const std::uint64_t> file_sizes,
                                        std::size_t count, std::uint64_t place_bytes) {
  const std::vector<std::uint64_t> ends = ends_of(file_sizes);
  const std::uint64_t total = ends.empty() ? 0 : ends.back();
  if (total == 0 || place_bytes == 0) return {};
  count = static_cast<std::size_t>(std::min<std::uint64_t>(count, (total - 1) / place_bytes + 1));
  std::vector<sample_place> places;
  for (const std::size_t part : jumping_order(count)) {
    const std::uint64_t middle = middle_of_part(total, part, count);
    const std::uint64_t begin = middle - std::min(middle, place_bytes / 2);
    places.push_back(place_at(ends, begin, begin + std::min(place_bytes, total - begin)));
  }
  return places;
}

std::vector<std::size_t> sample_files(std::span<const std::uint64_t> file_sizes,
                                      std::size_t count) {
  const std::vector<std::uint64_t> ends = ends_of(file_sizes);
  const std::uint64_t total = ends.empty() ? 0 : ends.back();
  if (total == 0) return {};
  std::vector<std::size_t> files;
  for (const std::size_t part : jumping_order(count)) {
    files.push_back(file_at(ends, middle_of_part(total, part, count)));
  }
  return files;
}

}  // namespace millrace::preprocess
