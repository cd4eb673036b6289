// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant/schedule.hpp>
#include <millrace/dataset/megatron/split.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/error.hpp>
#include <millrace/export.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/io/range_reader.hpp>
#include <millrace/loader/plan/sample_text.hpp>

namespace millrace::loader {

/// A run of any order as a loader sees it: from the position of a sample to the bytes that it is
/// made of. Nothing here reads a token; one virtual call a sample.
///
/// `text_of` is for one thread at a time, as it opens what it needs of a source when that is
/// touched, and has scratch; the rest is for any, meanwhile too.
class sample_plan {
 public:
  sample_plan() = default;
  sample_plan(const sample_plan&) = delete;
  sample_plan& operator=(const sample_plan&) = delete;
  virtual ~sample_plan() = default;

  /// Positions from here on are not served; 2^63 - 1 where the run has no end.
  virtual std::int64_t end() const = 0;
  /// Tokens of a row that are inputs.
  virtual std::int64_t seq_len() const = 0;
  /// Whether a row has a token more, its last label.
  virtual bool extra_token() const = 0;
  /// Whether rows are packed: labels and positions then end with each document.
  virtual bool packed() const { return false; }

  /// The `.bin` of each source, by its number.
  virtual std::vector<data_file> files() const = 0;
  /// The type of the tokens of each source.
  virtual std::vector<formats::dtype> types() const = 0;

  /// What a sample is made of, in place of what `out` held.
  ///
  /// @param boundaries  whether `out.boundaries` is wanted; packed rows have it always
  /// @pre 0 <= position < end()
  /// @throws io_error, format_error  the dataset cannot be opened, is not the one that the run was
  ///                                 set up with, or contradicts itself there.
  virtual void text_of(std::int64_t position, bool boundaries, sample_text& out) = 0;

  /// All positions, ascending, that hold a token of some sequences of a source.
  /// @pre the run has an end
  /// @throws as `text_of`
  virtual std::vector<std::int64_t> positions_with(std::int64_t source,
                                                   dataset::sequence_range sequences) = 0;

  /// Holds the steps that a loader counts against those that the order was made for, where it is of
  /// segments that begin with steps.
  /// @throws config_error  a segment begins elsewhere
  virtual void check_steps([[maybe_unused]] const dataset::batch_steps& steps) const {}

  /// What a state says of the data and its order; `data` has prefixes, names and weights only.
  virtual dataset::run_state description() const = 0;
};

namespace detail {

/// @throws config_error  a source holds floats.
inline void check_integers(const data_file& file, formats::dtype type) {
  if (type != formats::dtype::float32 && type != formats::dtype::float64) return;
  throw config_error(file.path.string() + " holds " + std::string(formats::name(type)) +
                     ", expected integers");
}

/// @throws config_error  a segment of the schedule does not begin where its step does.
MILLRACE_EXPORT void check_begins(const dataset::schedule& blend,
                                  const dataset::batch_steps& steps);

/// The `.bin` of an open dataset: no other file is taken for it, should it be replaced.
inline data_file bin_file_of(const dataset::indexed_dataset& data) {
  return {data.bin_path(), data.bin_size_bytes(), io::identity_of(data.bin_path())};
}

inline std::filesystem::path bin_of(std::filesystem::path prefix) {
  return prefix += ".bin";
}

}  // namespace detail
}  // namespace millrace::loader
