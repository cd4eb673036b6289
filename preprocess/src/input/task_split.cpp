// SPDX-License-Identifier: Apache-2.0
#include "input/task_split.hpp"

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "input/seekable_input.hpp"

namespace millrace::preprocess {
namespace {

// Returns floor(total * part / of), without computing a product that could overflow.
std::uint64_t portion(std::uint64_t total, std::int64_t part, std::int64_t of) {
  const auto p = static_cast<std::uint64_t>(part);
  const auto n = static_cast<std::uint64_t>(of);
  return total / n * p + total % n * p / n;
}

// Returns the place in the text at which a task should begin if its ideal start is byte `offset` of
// the file on disk.
text_place place_in(std::span<const input_file> inputs, std::size_t input, std::uint64_t offset,
                    std::uint64_t largest_part_bytes) {
  if (offset == 0) return {input, 0};
  const auto seekable = seekable_input::open(inputs[input], largest_part_bytes);
  if (seekable) return {input, seekable->text_before(offset)};
  return {offset < inputs[input].size_bytes - offset ? input : input + 1, 0};
}

/// Returns the place where task `index` begins and the previous task ends.
text_place boundary(std::span<const input_file> inputs, std::int64_t index, std::int64_t of,
                    std::uint64_t total, std::uint64_t largest_part_bytes) {
  if (index == 0) return {0, 0};
  if (index == of) return {inputs.size(), 0};
  std::uint64_t left = portion(total, index, of);
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    const std::uint64_t size = inputs[input].size_bytes;
    if (left < size) return place_in(inputs, input, left, largest_part_bytes);
    left -= size;
  }
  return {inputs.size(), 0};
}

}  // namespace

bool task_share::has_start_of(std::size_t input) const noexcept {
  const bool behind_begin = input > begin.input || (input == begin.input && at_line());
  return behind_begin && (input < end.input || (input == end.input && end.offset_bytes != 0));
}

task_share share_of(std::span<const input_file> inputs, const task_id& id,
                    std::uint64_t largest_part_bytes) {
  std::uint64_t total = 0;
  for (const input_file& file : inputs) {
    if (!file.regular) {
      throw config_error(
          fmt::format("{} is not a regular file; tasks cannot share an input that can be read only "
                      "once; write it to a file first",
                      display_path(file).string()));
    }
    total += file.size_bytes;
  }
  task_share share{
      .id = id,
      .begin = boundary(inputs, id.index, id.of, total, largest_part_bytes),
      .end = boundary(inputs, id.index + 1, id.of, total, largest_part_bytes),
      .disk_bytes = portion(total, id.index + 1, id.of) - portion(total, id.index, id.of)};
  return share;
}

task_share whole_share(std::span<const input_file> inputs) {
  task_share share;
  share.end = {inputs.size(), 0};
  for (const input_file& file : inputs) share.disk_bytes += file.size_bytes;
  return share;
}

std::filesystem::path task_prefix(std::filesystem::path prefix, const task_id& id) {
  prefix += fmt::format("_{:05}-of-{:05}", id.index, id.of);
  return prefix;
}

}  // namespace millrace::preprocess
