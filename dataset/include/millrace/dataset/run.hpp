// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/detail/sequence_range.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/file_mapping.hpp>

// Example:
//
//     // Prints where the tokens of sample 123 of any run come from.
//     const auto print = [](const millrace::dataset::run& run) {
//       const auto sample = run.at(123);
//       std::vector<millrace::dataset::piece> pieces;
//       run.pieces(sample, pieces);
//       for (const auto& piece : pieces) {
//         std::cout << piece.tokens << " tokens of sequence " << piece.sequence << '\n';
//       }
//     };
//     const millrace::dataset::indexed_dataset data("web_text_document");
//     print(millrace::dataset::stored_run(data, 4096));

namespace millrace::dataset {

/// A sample of a run: sample k of one of its sources.
struct source_sample {
  std::int64_t source = 0;
  std::int64_t k = 0;

  friend bool operator==(const source_sample&, const source_sample&) = default;
};

/// Samples [first, last) of a source. Together, these samples serve each token of the source
/// `times` times.
struct sample_round {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t times = 1;
  std::string name;  ///< e.g. "epoch 3"
};

/// Tokens [first, last) of a source's stream that a round does not serve, and the reason.
struct left_out {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t times = 1;
  std::string why;  ///< e.g. "before the first window"
};

/// The data file of one source of a run.
struct run_source {
  std::filesystem::path bin;
  formats::dtype type = formats::dtype::uint16;
  std::uint64_t bin_bytes = 0;  ///< size according to its index
  /// Identity of the `.bin` when the index was read, if known. A reader refuses any other file.
  std::optional<io::file_identity> identity = std::nullopt;
};

/// The order of samples over one dataset or a blend: maps the position of a sample to its tokens,
/// and back. The loader, `where`, `audit` and `simulate` all use this interface.
///
/// Implementations: `stored_run`, `megatron_run`, `instant_run` and `packed_run`. To add another
/// order, derive a class. The samples of a source are served in the order of k: 0, 1, 2, ... No
/// function reads tokens. All functions are thread-safe.
///
/// Example: print which sample of which source is served at the first ten positions.
///
///     void print(const millrace::dataset::run& order) {
///       for (std::int64_t p = 0; p < std::min<std::int64_t>(10, order.end()); ++p) {
///         const millrace::dataset::source_sample sample = order.at(p);
///         std::cout << order.prefix(sample.source) << " " << sample.k << '\n';
///       }
///     }
class MILLRACE_EXPORT run {
 public:
  virtual ~run() = default;

  /// Number of positions; 2^63 - 1 if the run has no end.
  virtual std::int64_t end() const = 0;
  /// Input tokens per row.
  virtual std::int64_t seq_len() const = 0;
  /// True if a row has one more token: the label of its last input.
  virtual bool extra_token() const = 0;
  /// True if rows are packed. Labels then do not cross from one document into the next, and
  /// position ids start again at 0 in each document.
  virtual bool packed() const { return false; }
  /// True if the last token of each document of a packed row is only a label (`packed_options`).
  /// `pieces` and `text_of` include it.
  virtual bool last_token_as_label() const { return false; }

  virtual std::int64_t source_count() const = 0;
  /// The path of a source without `.bin` and `.idx`.
  /// @pre 0 <= source < source_count()
  virtual const std::filesystem::path& prefix(std::int64_t source) const = 0;
  /// The data files, indexed by source.
  /// @throws io_error, format_error  a source cannot be opened
  virtual std::vector<run_source> sources() const = 0;

  /// The sample at a position.
  /// @pre 0 <= position < end()
  virtual source_sample at(std::int64_t position) const = 0;

  /// Replaces `out` with the pieces of a sample.
  ///
  /// @return number of padding tokens: at the end of the row and, in packed rows, after documents
  /// @throws io_error, format_error  the dataset cannot be opened, is not the one that the run was
  ///                                 created with, or is inconsistent at this sample
  virtual std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const = 0;

  /// Replaces `out` with the offset of each piece in its row, in tokens.
  /// @throws as `pieces`
  virtual void starts_of(const source_sample& sample, std::span<const piece> pieces,
                         std::vector<std::int64_t>& out) const;

  /// Replaces `out` with the byte ranges of a row.
  ///
  /// @param boundaries  if true, fills in `out.boundaries`; always done for packed rows
  /// @pre 0 <= position < end()
  /// @throws as `pieces`
  virtual void text_of(std::int64_t position, bool boundaries, sample_text& out) const = 0;

  /// Returns all positions below `before` whose samples contain any token of the sequences, even if
  /// only as the last label. The positions are in ascending order.
  /// @param before  at most end()
  /// @throws as `pieces`
  virtual std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                                   std::int64_t before) const = 0;

  /// Number of samples of a source among the first `positions` positions.
  /// @pre 0 <= positions <= end()
  virtual std::int64_t taken(std::int64_t source, std::int64_t positions) const = 0;
  /// The round that contains sample k of a source.
  virtual sample_round round_of(std::int64_t source, std::int64_t k) const = 0;
  /// The tokens of a source that a round does not serve.
  /// @throws as `pieces`
  virtual std::vector<left_out> left_out_of(std::int64_t source,
                                            const sample_round& round) const = 0;

  /// Checks that `steps` match the steps of the run's schedule, if the run has one.
  /// @throws config_error  a segment of the schedule begins at a different position
  virtual void check_steps([[maybe_unused]] const batch_steps& steps) const {}

  /// Describes the order in the form of a state. In each entry of `data`, only the prefix, the name
  /// and the weight are filled in.
  virtual run_state description() const = 0;

 protected:
  run() = default;
  run(const run&) = default;
  run& operator=(const run&) = default;
};

/// Serves one dataset once, in stored order: sample k is window k of `token_windows`. Copies share
/// their contents.
///
///     const millrace::dataset::indexed_dataset data("out/web_text_document");
///     const millrace::dataset::stored_run run(data, 4096);  // seq_len
///     millrace::loader::batch_loader loader(run, {.batch_size = 8});
class MILLRACE_EXPORT stored_run : public run {
 public:
  /// @throws config_error  as `token_windows`
  stored_run(std::shared_ptr<const indexed_dataset> data, std::int64_t seq_len);
  /// @param data  must outlive the run
  /// @throws as above
  stored_run(const indexed_dataset& data, std::int64_t seq_len);
  stored_run(const indexed_dataset&&, std::int64_t) = delete;

  std::int64_t end() const override;
  std::int64_t seq_len() const override;
  bool extra_token() const override { return true; }
  std::int64_t source_count() const override { return 1; }
  const std::filesystem::path& prefix(std::int64_t source) const override;
  std::vector<run_source> sources() const override;
  source_sample at(std::int64_t position) const override { return {0, position}; }
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const override;
  void text_of(std::int64_t position, bool boundaries, sample_text& out) const override;
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const override;
  std::int64_t taken(std::int64_t source, std::int64_t positions) const override;
  sample_round round_of(std::int64_t source, std::int64_t k) const override;
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const override;
  run_state description() const override;

 private:
  struct contents;
  std::shared_ptr<const contents> shared_;
};

}  // namespace millrace::dataset
