// SPDX-License-Identifier: Apache-2.0
#include "report/sample_reader.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/byte_source.hpp"
#include "input/line_ends.hpp"
#include "record/record_parser.hpp"

namespace millrace::preprocess {
namespace {

// Returns a permutation of [0, count). Consecutive indices differ by about 0.618 (golden ratio)
// times `count`, so the first few indices are far apart.
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

// Returns the index of the file that contains byte `at` of the concatenation. `at` must be less
// than `ends.back()`.
std::size_t file_at(const std::vector<std::uint64_t>& ends, std::uint64_t at) {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
}

// Cuts [0, total) into `count` equal parts and returns the middle of part `i`. Avoids products that
// could overflow.
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

namespace {

constexpr std::size_t padding = record_parser::padding_bytes;
constexpr int least_jumps = 3;

std::string_view without_mark(std::string_view text) {
  return text.substr(mark_bytes_of(text));
}

// Returns the offset of the first line in `text` that starts at or after `from`, or npos. `from`
// must be at least 1. A line ends with `\n`, `\r\n` or `\r`. Never returns the end of `text`: if
// `text` ends with `\r`, a `\n` may still follow.
std::size_t line_start(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    const char before = text[at - 1];
    if (before == '\n' || (before == '\r' && text[at] != '\n')) return at;
  }
  return text.npos;
}

std::span<std::byte> bytes_of(std::vector<char>& buffer, std::size_t begin, std::size_t end) {
  return std::as_writable_bytes(std::span(buffer).subspan(begin, end - begin));
}

}  // namespace

bool sample_reader::read(const input_file& file, const sample_range& range,
                         const take_lines& take) {
  const io::unique_fd fd = io::open_read_only(file.path);
  // The byte before the range shows whether a line starts at the beginning of the range.
  const std::uint64_t origin = range.begin == 0 ? 0 : range.begin - 1;
  const auto behind = static_cast<std::size_t>(range.end - origin);
  std::size_t size = 0;
  std::size_t wanted = behind + 4096;
  while (true) {
    buffer_.resize(wanted + padding);
    size += io::pread_some(fd, bytes_of(buffer_, size, wanted), origin + size, file.path);
    const std::string_view text(buffer_.data(), size);
    const bool at_end = size < wanted;
    const std::size_t first = range.begin == 0 ? 0 : line_start(text, 1);
    if (first >= behind) return true;  // no line starts in the range
    const std::size_t last = line_start(text, std::max<std::size_t>(behind, 1));
    if (last != text.npos || at_end) {
      const std::string_view lines = text.substr(first, std::min(last, size) - first);
      take(range.begin == 0 ? without_mark(lines) : lines);
      return true;
    }
    if (size > behind + longest_sampled_line) return false;
    wanted = size + std::max<std::size_t>(size - behind, 4096);
  }
}

compressed_sample read_start(const input_file& file, std::size_t piece_bytes,
                             std::uint64_t enough_bytes, const take_lines& take) {
  const auto source = open_input(file);
  compressed_sample sample;
  std::vector<char> buffer(piece_bytes + padding);
  std::size_t held = 0;
  std::uint64_t produced = 0;
  int jumps = 0;
  bool at_start = true;
  const auto give = [&](std::size_t size) {
    const std::string_view lines(buffer.data(), size);
    take(at_start ? without_mark(lines) : lines);
    at_start = false;
    sample.text_bytes += size;
    std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(size),
              buffer.begin() + static_cast<std::ptrdiff_t>(held), buffer.begin());
    held -= size;
  };
  while (true) {
    const std::uint64_t position = source->position_bytes();
    const std::size_t got = source->read(bytes_of(buffer, held, buffer.size() - padding));
    // The source may read the file in large steps. When its position changes, all data before the
    // old position has been decompressed, so `produced` and `position` describe the same data.
    if (source->position_bytes() != position && position != 0) {
      sample.compression_ratio = static_cast<double>(produced) / static_cast<double>(position);
      ++jumps;
    }
    held += got;
    produced += got;
    if (got == 0) {
      if (held > 0) give(held);
      sample.whole = true;
      const std::uint64_t all = source->position_bytes();
      if (all > 0)
        sample.compression_ratio = static_cast<double>(produced) / static_cast<double>(all);
      return sample;
    }
    if (held + padding < buffer.size()) continue;
    // Split at the last position at which a line certainly starts. If one line fills the buffer,
    // enlarge the buffer.
    const std::string_view text(buffer.data(), held);
    const std::size_t feed = text.find_last_of("\r\n", held - 2);
    const bool pair = feed != text.npos && text[feed] == '\r' && text[feed + 1] == '\n';
    if (feed != text.npos) {
      give(feed + (pair ? 2 : 1));
    } else if (held > longest_sampled_line) {
      return sample;
    } else {
      buffer.resize(2 * buffer.size());
    }
    if (sample.text_bytes >= enough_bytes &&
        (jumps >= least_jumps || sample.text_bytes >= 8 * enough_bytes)) {
      return sample;
    }
  }
}

}  // namespace millrace::preprocess
