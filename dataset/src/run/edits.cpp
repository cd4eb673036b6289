// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/state.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE void check(const edit& e, std::size_t number) {
  const auto refuse = [&](const std::string& what) {
    throw config_error("edit " + std::to_string(number) + ", " + name_of(e) + " [" +
                       std::to_string(e.first) + ", " + std::to_string(e.last) + "]: " + what);
  };
  const bool steps = e.unit == edit_unit::steps;
  const std::int64_t most = steps ? most_steps : most_positions;
  const std::string up_to_most = steps ? "2^40" : "2^62";
  if (e.first < 0 || e.last < e.first || e.last > most) {
    refuse("expected an ascending range within 0 to " + up_to_most);
  }
  if (e.since < 0 || e.since > most_positions) {
    refuse("since is " + std::to_string(e.since) + ", expected 0 to 2^62");
  }
  if ((e.kind == edit_kind::block) != (e.unit == edit_unit::documents)) {
    refuse("only documents can be blocked, and only samples or steps skipped or replayed");
  }
  if (e.kind == edit_kind::block && e.source.empty()) {
    refuse("source is empty, expected the prefix of the dataset of these documents");
  }
  if (e.kind == edit_kind::replay && (e.at < e.last || e.at > most)) {
    refuse("at is " + std::to_string(e.at) + ", expected " + std::to_string(e.last) +
           " or later, after these were served, and up to " + up_to_most);
  }
  if (e.why.empty()) refuse("why is empty, expected a reason");
}

}  // namespace millrace::dataset
