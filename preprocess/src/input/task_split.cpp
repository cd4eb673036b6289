// SPDX-License-Identifier: Apache-2.0
#include "input/task_split.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

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

// Returns the place in the text at which a task begins. Its ideal start is byte `offset` of the
// file on disk, but not every file can be cut there.
text_place place_in(std::span<const input_file> inputs, std::size_t input, std::uint64_t offset,
                    std::uint64_t largest_part_bytes) {
  if (offset == 0) return {input, 0};
  const auto seekable = seekable_input::open(inputs[input], largest_part_bytes);
  if (seekable) return {input, seekable->offset_before(offset)};
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
  const bool behind_begin = input > begin.input || (input == begin.input && begin.offset == 0);
  return behind_begin && (input < end.input || (input == end.input && end.offset != 0));
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
  share.at_line = share.begin.offset == 0 || inputs[share.begin.input].has_rows();
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

namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || text.front() == '-') return std::nullopt;
  return value;
}

bool is_task(const task_id& id) {
  return id.of >= 1 && id.of <= most_tasks && id.index >= 0 && id.index < id.of;
}

/// Reads Slurm's environment variables as numbers.
class slurm {
 public:
  explicit slurm(const std::function<const char*(const char*)>& variable) : variable_(variable) {}

  bool has(const char* name) const { return variable_(name) != nullptr; }
  std::int64_t get(const char* name) const {
    const char* text = variable_(name);
    const auto value = text != nullptr && *text != '\0' ? number(text) : std::nullopt;
    if (!value) {
      throw config_error(fmt::format("--task slurm: {} is {}, expected a number", name,
                                     text != nullptr ? fmt::format("'{}'", text) : "not set"));
    }
    return *value;
  }

 private:
  const std::function<const char*(const char*)>& variable_;
};

task_id task_of_array(const slurm& slurm) {
  const std::int64_t first = slurm.get("SLURM_ARRAY_TASK_MIN");
  const std::int64_t last = slurm.get("SLURM_ARRAY_TASK_MAX");
  const std::int64_t count = slurm.get("SLURM_ARRAY_TASK_COUNT");
  // Users rerun the failed elements of a larger array as an array with gaps. The number of elements
  // in such an array is not the number of tasks.
  if (last - first != count - 1) {
    throw config_error(
        fmt::format("--task slurm: the array goes from {} to {} but has {} elements; pass --task "
                    "I/N instead, where N is the number of tasks in the whole run",
                    first, last, count));
  }
  return {slurm.get("SLURM_ARRAY_TASK_ID") - first, count};
}

}  // namespace

task_id task_of(std::string_view flag, const std::function<const char*(const char*)>& variable) {
  if (flag == "slurm") {
    const slurm slurm(variable);
    task_id id;
    if (slurm.has("SLURM_ARRAY_TASK_ID")) {
      id = task_of_array(slurm);
    } else if (slurm.has("SLURM_PROCID")) {
      id = {slurm.get("SLURM_PROCID"), slurm.get("SLURM_NTASKS")};
    } else {
      throw config_error(
          "--task slurm: neither SLURM_ARRAY_TASK_ID nor SLURM_PROCID is set; run this in a Slurm "
          "job, or pass --task I/N");
    }
    if (is_task(id)) return id;
    throw config_error(fmt::format(
        "--task slurm: Slurm reports task {} of {}, expected task 0 to N - 1 of N, with "
        "N from 1 to {}",
        id.index, id.of, most_tasks));
  }
  const std::size_t slash = flag.find('/');
  if (slash != flag.npos && slash != 0 && slash + 1 != flag.size()) {
    const auto index = number(flag.substr(0, slash));
    const auto of = number(flag.substr(slash + 1));
    if (index && of && is_task({*index, *of})) return {*index, *of};
  }
  throw config_error(
      fmt::format("--task {}: expected I/N, with I from 0 to N - 1 and N from 1 to {}, "
                  "or slurm",
                  flag, most_tasks));
}

namespace {
constexpr std::uint64_t task_bytes = std::uint64_t{32} << 20;
constexpr std::uint64_t most_job_tasks = 4096;
}  // namespace

std::int64_t task_count(std::span<const input_file> inputs) {
  std::uint64_t total = 0;
  for (const input_file& file : inputs) total += file.size_bytes;
  return static_cast<std::int64_t>(
      std::clamp<std::uint64_t>(total / task_bytes, 1, most_job_tasks));
}

}  // namespace millrace::preprocess
