// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "input/byte_block.hpp"
#include "input/input_plan.hpp"
#include "output/dataset_outputs.hpp"
#include "output/run_state.hpp"
#include "record/block_encoder.hpp"
#include "record/encoded_block.hpp"
#include "record/giant_record.hpp"

namespace millrace::preprocess {

/// A bad record that ends the run: `file:line (byte N): what`. The byte counts from the start of
/// the decompressed file, from 0; the line from 1.
class bad_record_error : public error {
 public:
  /// @param has_advice  `what` says what to do
  explicit bad_record_error(const std::string& what, bool has_advice = false)
      : error(what), has_advice_(has_advice) {}
  bool has_advice() const noexcept { return has_advice_; }

 private:
  bool has_advice_;
};

/// What a committer does with what comes.
struct commit_options {
  std::vector<std::filesystem::path> prefixes = {};  ///< of the output datasets, one a key
  dataset_options dataset = {};
  std::size_t partitions = 1;  ///< as dataset_outputs has them
  bad_record_policy on_bad_record = bad_record_policy::fail;
  std::optional<std::int64_t> most_bad_records = std::nullopt;  ///< one more ends the run
  /// Of a record that P.bad keeps. Asked of its own size, so that it is kept or not wherever blocks
  /// are cut.
  std::size_t most_raw_bytes = std::size_t{16} << 20;
  text_place begin = {};  ///< of what the run was to read, wherever it goes on
};

/// As encode_giant_record(), of a line that is known.
using giant_encoder = std::function<std::optional<record_fault>(id_sink&, record_counts&)>;

/// Gives encoded blocks their place in the output, in input order. Nothing else decides where a
/// byte goes, so neither threads nor the size of blocks can change the output. For one thread, but
/// for sync().
class committer {
 public:
  /// @param inputs  outlives this
  /// @param range   what of them will come
  /// @param from    what to go on from; null for a fresh start
  committer(std::span<const input_file> inputs, const read_range& range,
            const commit_options& options, const run_state* from);

  /// Notes given in a run; further faults are only counted.
  static constexpr std::size_t most_notes = 10;

  /// Appends the next block.
  ///
  /// @return a line for each of the block's faults, if it is among the run's first.
  /// @throws bad_record_error  under `fail`, if the block has a bad record; if it has one too many.
  /// @throws error             the block does not begin where the last one ended: the input
  /// changed.
  std::vector<std::string> commit(const encoded_block& block);

  /// Appends a line that was too long for a block.
  ///
  /// @param encode  gives the line's ids to the sink, and what the line adds to the counts
  /// @throws line_abandoned  as `encode` does: then outputs and counts are as before the call, and
  ///                         the next run goes on with this line
  std::vector<std::string> commit(std::size_t input, const giant_line& line,
                                  const giant_encoder& encode);

  /// How far the outputs are: after the last commit() that returned.
  const run_state& state() const noexcept { return state_; }
  /// A fresh run that has committed nothing yet.
  bool is_untouched() const noexcept { return untouched_; }
  /// The first bad record of this run, with advice; empty if it met none.
  const std::string& first_fault() const noexcept { return first_fault_; }

  /// Notes that the input that is being read is damaged, if `fault` is of it: whoever goes on may
  /// then find other text there, and begin with it anew.
  void note_damage(const format_error& fault);
  /// Notes that none is, to the end of the last one.
  void note_all_read() noexcept;

  /// Makes durable what was committed before the call. From another thread too.
  void sync();

  /// See dataset_writer.
  void keep() noexcept;
  void forget() noexcept;
  std::list<dataset_writer>& writers() noexcept { return outputs_.wholes(); }
  dataset_outputs& outputs() noexcept { return outputs_; }

  /// When all is committed: as dataset_outputs::join, with a state to go on from whenever it calls
  /// `go_on`.
  bool join_partitions(std::span<const std::string> inputs, std::size_t chunk_bytes,
                       const std::function<bool()>& go_on);

 private:
  void enter(std::size_t input, std::uint64_t begin);
  void refuse(const encoded_block& block);
  std::uint32_t number_of(std::size_t input) const;
  void limit(std::vector<std::string>& notes);
  void append_places(const encoded_block& block);
  void append_bad(const encoded_block& block, std::uint64_t giant_bytes = 0);
  void append_document(std::size_t input, const giant_line& line);
  void advance(std::uint64_t end, std::uint32_t crc32c, const record_counts& counts);
  std::string describe(const encoded_block& block, const block_fault& fault);
  std::string describe_with_advice(const encoded_block& block, const block_fault& fault);
  std::optional<std::int64_t> line_of(const encoded_block& block, const block_fault& fault);

  std::span<const input_file> inputs_;
  commit_options options_;
  dataset_outputs outputs_;
  run_state state_;
  std::string first_fault_;
  bool untouched_ = true;
  bool begun_;             // the first line is known
  std::size_t notes_ = 0;  // given so far, at most most_notes
  bool told_of_more_ = false;
  bool counted_ = false;                       // the next is known
  std::optional<std::int64_t> lines_before_;   // of the input that the run begins within
  std::vector<formats::source_place> places_;  // reused
};

}  // namespace millrace::preprocess
