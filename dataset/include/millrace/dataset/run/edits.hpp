// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/export.hpp>

namespace millrace::dataset {

enum class edit_kind : std::uint8_t {
  skip,    ///< never served from now on
  replay,  ///< served once more
  block,   ///< documents whose samples are skipped wherever they come
};

enum class edit_unit : std::uint8_t { samples, steps, documents };

/// A change of what a run serves. Ranges are absolute and are those of the run without edits:
/// position 1000 is the same sample whatever was skipped before it, and step 10 is its positions
/// 10 * global_batch on.
struct edit {
  edit_kind kind = edit_kind::skip;
  edit_unit unit =
      edit_unit::samples;  ///< samples or steps; documents where, and only where, blocked
  std::int64_t first = 0;  ///< samples, steps or documents from here on
  std::int64_t last = 0;   ///< up to but without this one
  std::int64_t at = 0;  ///< of a replay: the sample or step before which it comes, `last` or later
  std::int64_t since = 0;  ///< samples that had been served when the edit was made: those stay so
  std::string source =
      {};                ///< of blocked documents: the prefix of their dataset, as the run names it
  std::string why = {};  ///< in somebody's words; not empty

  friend bool operator==(const edit&, const edit&) = default;
};

/// Samples `first` to `last - 1`.
struct position_range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  friend bool operator==(const position_range&, const position_range&) = default;
};

/// "skip_samples", "replay_steps", "block_documents": how a state names an edit.
inline std::string name_of(const edit& e) {
  constexpr const char* kinds[] = {"skip", "replay", "block"};
  constexpr const char* units[] = {"samples", "steps", "documents"};
  return std::string(kinds[static_cast<int>(e.kind)]) + '_' + units[static_cast<int>(e.unit)];
}

/// @throws config_error  the edit contradicts itself; the message names it by its number.
MILLRACE_EXPORT void check(const edit& e, std::size_t number);

}  // namespace millrace::dataset
