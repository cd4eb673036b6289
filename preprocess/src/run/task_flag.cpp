// SPDX-License-Identifier: Apache-2.0
#include "run/task_flag.hpp"

#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <millrace/error.hpp>

namespace millrace::preprocess {
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
  // An array with gaps is used to rerun failed elements of a larger array. So its number of
  // elements is not the number of tasks.
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

}  // namespace millrace::preprocess
