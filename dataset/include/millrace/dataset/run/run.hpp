// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/megatron/split.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/sample_text.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/sample/piece.hpp>
#include <millrace/export.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// A sample of a run: the k-th of one of its sources.
struct source_sample {
  std::int64_t source = 0;
  std::int64_t k = 0;

  friend bool operator==(const source_sample&, const source_sample&) = default;
};

/// Samples of a source, `first` up to but without `last`, that are to serve each of its tokens
/// `times` times.
struct sample_round {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t times = 1;
  std::string name;  ///< e.g. "epoch 3"
};

/// Tokens `first` up to but without `last` of a source's stream that a round leaves out, and why.
struct left_out {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t times = 1;
  std::string why;  ///< e.g. "before the first window"
};

/// A dataset of a run, as far as its bytes are concerned.
struct run_source {
  std::filesystem::path bin;
  formats::dtype type = formats::dtype::uint16;
  std::uint64_t bin_bytes = 0;  ///< that its index says
  /// The file that the index was read beside, where that is known: no other one is taken for it.
  std::optional<io::file_identity> identity = std::nullopt;
};

/// An order of samples over one dataset or a blend: from the position of a sample to its tokens,
/// and back. Whoever asks what a run serves asks one of these: the loader, `where`, `audit`,
/// `simulate`.
///
/// Implementations are `stored_run`, `megatron_run`, `instant_run` and `packed_run`; another order
/// is another class. Of each source, k ascends by one from position to position. Nothing here reads
/// a token, and an answer takes one virtual call a sample, never one a token. Any thread.
class MILLRACE_EXPORT run {
 public:
  virtual ~run() = default;

  /// Positions from here on are not served; 2^63 - 1 where the run has no end.
  virtual std::int64_t end() const = 0;
  /// Tokens of a row that are inputs.
  virtual std::int64_t seq_len() const = 0;
  /// Whether a row has one more token, its last label.
  virtual bool extra_token() const = 0;
  /// Whether rows are packed: labels and positions then end with each document.
  virtual bool packed() const { return false; }

  virtual std::int64_t source_count() const = 0;
  /// The path of a source without `.bin` and `.idx`.
  /// @pre 0 <= source < source_count()
  virtual const std::filesystem::path& prefix(std::int64_t source) const = 0;
  /// The data files, by the numbers of the sources.
  /// @throws io_error, format_error  a source cannot be opened
  virtual std::vector<run_source> sources() const = 0;

  /// Which sample a position is.
  /// @pre 0 <= position < end()
  virtual source_sample at(std::int64_t position) const = 0;

  /// The pieces of a sample, in place of what `out` held.
  ///
  /// @return tokens of padding, which lie after the pieces, or after the documents among them
  /// @throws io_error, format_error  the dataset cannot be opened, is not the one that the run was
  ///                                 set up with, or contradicts itself there
  virtual std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const = 0;

  /// Where in the row each piece of a sample begins, in place of what `out` held.
  /// @throws as pieces
  virtual void starts_of(const source_sample& sample, std::span<const piece> pieces,
                         std::vector<std::int64_t>& out) const;

  /// The bytes that a row is made of, in place of what `out` held.
  ///
  /// @param boundaries  whether `out.boundaries` is wanted; packed rows have it always
  /// @pre 0 <= position < end()
  /// @throws as pieces
  virtual void text_of(std::int64_t position, bool boundaries, sample_text& out) const = 0;

  /// All positions below `before`, ascending, whose samples hold a token of the sequences, even as
  /// the last label.
  /// @param before  at most end()
  /// @throws as pieces
  virtual std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                                   std::int64_t before) const = 0;

  /// How many of the first positions are samples of a source.
  /// @pre 0 <= positions <= end()
  virtual std::int64_t taken(std::int64_t source, std::int64_t positions) const = 0;
  /// The round that a sample of a source belongs to.
  virtual sample_round round_of(std::int64_t source, std::int64_t k) const = 0;
  /// The tokens of a source that a round leaves out.
  /// @throws as pieces
  virtual std::vector<left_out> left_out_of(std::int64_t source,
                                            const sample_round& round) const = 0;

  /// Compares steps with those that the run was made for, where its schedule counts steps.
  /// @throws config_error  a segment of the schedule begins elsewhere
  virtual void check_steps([[maybe_unused]] const batch_steps& steps) const {}

  /// What a state says of the order; of its data prefixes, names and weights.
  virtual run_state description() const = 0;

 protected:
  run() = default;
  run(const run&) = default;
  run& operator=(const run&) = default;
};

}  // namespace millrace::dataset
