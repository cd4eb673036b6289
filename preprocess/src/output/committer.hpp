// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "input/byte_block.hpp"
#include "input/input_plan.hpp"
#include "output/dataset_outputs.hpp"
#include "output/run_progress.hpp"
#include "record/block_encoder.hpp"
#include "record/encoded_block.hpp"
#include "record/giant_record.hpp"
#include "record/record_sampler.hpp"

namespace millrace::preprocess {

/// A bad record that ends the run. The message is `file:line (byte N): what`, or `file, row N:
/// what` for a table. N is the offset in the decompressed file. N starts at 0, and lines start
/// at 1.
class bad_record_error : public error {
 public:
  /// @param has_advice  `what` already says what the user can do
  explicit bad_record_error(const std::string& what, bool has_advice = false)
      : error(what), has_advice_(has_advice) {}
  bool has_advice() const noexcept { return has_advice_; }

 private:
  bool has_advice_;
};

/// Options of a committer.
struct commit_options {
  std::vector<std::filesystem::path> prefixes = {};  ///< prefixes of the outputs, one per key
  dataset_options dataset = {};
  std::size_t partitions = 1;  ///< as in dataset_outputs
  bad_record_policy on_bad_record = bad_record_policy::fail;
  std::optional<std::int64_t> most_bad_records = std::nullopt;  ///< the run ends after more
  /// P.bad stores the bytes of a bad record only if the record is at most this large. The limit
  /// is the same for all block sizes, so P.bad does not depend on block boundaries.
  std::size_t most_raw_bytes = std::size_t{16} << 20;
  /// As encoder_options::sampler, for lines that are too long for a block.
  std::shared_ptr<const record_sampler> sampler = nullptr;
  /// `--max-tokens`: the run ends before the first document with which a dataset would have more
  /// tokens. Blocks must have marks.
  std::optional<std::int64_t> most_tokens = std::nullopt;
  text_place begin = {};  ///< where the run's inputs start; the same in a resumed run
};

/// A function that calls encode_giant_record() for one particular line.
using giant_encoder = std::function<std::optional<record_fault>(id_sink&, record_counts&)>;

/// Writes encoded blocks to the outputs, in input order. Only this class decides where bytes go in
/// the outputs, so the outputs depend neither on threads nor on block sizes. Only sync() is
/// thread-safe.
class committer {
 public:
  /// @param inputs  must outlive this object
  /// @param range   the part of the inputs that will be committed
  /// @param from    the state to resume from; null for a new run
  committer(std::span<const input_file> inputs, const read_range& range,
            const commit_options& options, const run_progress* from);

  /// Maximum number of notes about bad records per run. Further bad records are only counted.
  static constexpr std::size_t most_notes = 10;

  /// Appends the next block.
  ///
  /// @param block  is cut if it exceeds `most_tokens`
  /// @return notes about bad records in this block: one line per record until the run has
  /// `most_notes` notes
  /// @throws bad_record_error  the block has a bad record and the policy is `fail`, or the run has
  ///                           too many bad records.
  /// @throws error             the block does not begin where the last block ended, because the
  ///                           input changed.
  std::vector<std::string> commit(encoded_block& block);

  /// Appends the document of a line that is too long for a block.
  ///
  /// @param encode  passes the line's ids to the sink, and increases the counts
  /// @throws line_abandoned  `encode` threw line_abandoned. In this case, the call changed neither
  ///                         the outputs nor the counts, and the next run resumes with this line.
  std::vector<std::string> commit(std::size_t input, const giant_line& line,
                                  const giant_encoder& encode);

  /// True if the run has ended because of `most_tokens`. Then nothing more may be committed.
  bool is_full() const noexcept { return state_.stopped_before.has_value(); }
  /// How much the datasets can still grow because of `most_tokens`, as a multiple of their size.
  /// Nothing if there is no limit, or if there are no tokens yet.
  std::optional<double> most_growth() const noexcept;
  /// State of the run after the last successful commit().
  const run_progress& state() const noexcept { return state_; }
  /// True for a new run that has committed nothing yet.
  bool is_untouched() const noexcept { return untouched_; }
  /// The description of the first bad record of this run, with advice; empty if there is none.
  const std::string& first_fault() const noexcept { return first_fault_; }

  /// If `fault` is in the current input, marks this input as damaged. If the file of a damaged
  /// input has changed when a later run resumes, that run reads the input again from its start.
  void note_damage(const format_error& fault);
  /// Records that all inputs were read without damage: to their end, unless the run is full.
  void note_all_read() noexcept;

  /// Makes everything that was committed before the call durable. Another thread may call this.
  void sync();

  /// Call dataset_writer::keep() and dataset_writer::forget() for all outputs.
  void keep() noexcept;
  void forget() noexcept;
  std::list<dataset_writer>& writers() noexcept { return outputs_.wholes(); }
  dataset_outputs& outputs() noexcept { return outputs_; }

  /// Appends the last point of P.cuts. Call this after everything was committed, before the
  /// datasets are finished. Does nothing if there is no P.cuts.
  void end_cuts();

  /// Joins the partitions: see dataset_outputs::join(). Call this after everything was committed.
  /// `go_on` may save state(), so that a later run can resume from that state.
  bool join_partitions(std::span<const formats::src_input> inputs, std::size_t chunk_bytes,
                       const std::function<bool()>& go_on);

 private:
  std::vector<std::string> commit_whole(const encoded_block& block);
  std::size_t documents_that_fit(const encoded_block& block) const;
  std::int64_t token_count(std::uint64_t bytes) const noexcept;
  void enter(std::size_t input, std::uint64_t begin);
  void refuse(const encoded_block& block);
  std::uint32_t number_of(std::size_t input) const;
  void limit(std::vector<std::string>& notes);
  void append_places(const encoded_block& block);
  cut_point point_before(std::size_t input, std::uint64_t begin) const;
  void append_cuts(const encoded_block& block);
  void append_bad(const encoded_block& block, std::uint64_t giant_bytes = 0);
  void append_document(std::size_t input, const giant_line& line,
                       std::span<const text_digest> digests);
  void advance(std::uint64_t end, std::uint64_t bytes, std::uint32_t crc32c,
               const record_counts& counts);
  std::string describe(const encoded_block& block, const block_fault& fault);
  std::string describe_with_advice(const encoded_block& block, const block_fault& fault);
  std::optional<std::int64_t> line_of(const encoded_block& block, const block_fault& fault);

  std::span<const input_file> inputs_;
  commit_options options_;
  dataset_outputs outputs_;
  run_progress state_;
  std::string first_fault_;
  std::vector<std::int64_t> tokens_;  // of each key so far
  bool untouched_ = true;
  bool begun_;             // the offset of the first line is already stored in `state_`
  std::size_t notes_ = 0;  // number of notes given so far, at most most_notes
  bool told_of_more_ = false;
  bool counted_ = false;                       // `lines_before_` was computed
  std::optional<std::int64_t> lines_before_;   // lines before the first input's `begin`
  std::vector<formats::source_place> places_;  // a member only to reuse its memory
};

}  // namespace millrace::preprocess
