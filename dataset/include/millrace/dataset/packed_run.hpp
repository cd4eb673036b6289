// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/instant_options.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     // Whole documents, packed into rows of 4,096 tokens.
//     millrace::dataset::instant_options options;
//     options.seq_len = 4096;
//     options.segments = {{.first_step = 0, .sources = {{0, 1.0}}}};
//     std::vector<millrace::dataset::instant_source> sources(1);
//     sources[0].prefix = "web_text_document";
//     const millrace::dataset::packed_run run(sources, options);

namespace millrace::dataset {

class row_plan;
class schedule;
struct packed_place;

/// Options of packing, in addition to `instant_options`.
struct packed_options {
  std::int64_t pad_documents_to = 1;  ///< see `best_fit_options`
  int threads = 0;                    ///< threads that build row tables; 0: one per processor
  bool keep_tables = true;            ///< store tables next to the datasets, see `open_row_table`
  packing_algorithm algorithm = packing_algorithm::best_fit;
  /// Whether documents that are longer than a row may be left out. `best_fit` cuts them instead.
  bool leave_out_overlong = false;
  /// Whether the last token of each document is only a label. A document of n tokens then takes
  /// n - 1 positions, each of which has a label, as in Megatron-Bridge. Documents of one token are
  /// in no row, and the padding at the end of a row is a range of its own. `best_fit` has no such
  /// rows.
  bool last_token_as_label = false;
  /// Whether the weight of a source is its number of rows, so that all sources complete their
  /// epochs at the same time. The weights in the segments are then ignored. One source keeps its
  /// weight, which has no effect.
  bool weigh_by_rows = false;
};

/// The `instant` order of packed rows, over one dataset or a blend. Each row is one sample. In each
/// epoch, the rows of a source are shuffled with keys for the tag `bins`
/// (formats/spec/instant_order.md). Blends and schedules work as in `instant_order`.
///
/// The constructor counts the rows of every source. With `best_fit`, the row table of a source
/// takes 8 bytes per 4,096 documents. The other algorithms pack all documents in the constructor,
/// and keep 8 bytes per document and 4 per row. The seed of the first-fit algorithms is the seed of
/// the options. Only `.idx` files are read. A bounded number of them stays open; they are mapped,
/// or read with pread if mmap fails. Thread-safe.
///
///     namespace dataset = millrace::dataset;
///     std::vector<dataset::instant_source> sources(1);
///     sources[0].prefix = "out/web_text_document";
///     dataset::instant_options options;
///     options.seq_len = 4096;
///     options.segments = {{.first_step = 0, .sources = {{0, 1.0}}}};
///     const dataset::packed_run run(sources, options);
class MILLRACE_EXPORT packed_run : public run {
 public:
  /// `open_source` is a source that is open. `source_info` has the facts about a source that are
  /// known without opening it. Both are defined in packed_sources.hpp.
  struct open_source;
  struct source_info;
  using source_pointer = std::shared_ptr<const open_source>;

  /// @throws config_error  an option is out of range, names are not unique, a source has no row or
  ///                       has documents that must not be left out, or `schedule` refuses the
  ///                       segments
  /// @throws io_error, format_error  a dataset cannot be opened, or is inconsistent.
  packed_run(const std::vector<instant_source>& sources, const instant_options& options,
             const packed_options& packing = {});

  const schedule& blend() const noexcept;
  std::int64_t pad_documents_to() const noexcept;
  packing_algorithm algorithm() const noexcept;
  const source_info& info(std::int64_t s) const noexcept;
  /// The epoch and row of a sample.
  packed_place place_of(const source_sample& sample) const noexcept;
  /// Returns a source, after opening it if necessary. The source stays open as long as the pointer
  /// exists.
  /// @throws io_error, format_error  the source cannot be opened, or is not the one whose rows were
  ///                                 counted.
  source_pointer open(std::int64_t s) const;
  /// How the documents of a source fill its rows. Unless the algorithm is `best_fit`, this reads
  /// all lengths.
  /// @throws io_error, format_error  as `open`, and the index cannot be read
  packing_report packing_of(std::int64_t s) const;

  std::int64_t end() const override;
  std::int64_t seq_len() const override;
  bool extra_token() const override { return false; }
  bool packed() const override { return true; }
  bool last_token_as_label() const override;
  std::int64_t source_count() const override;
  const std::filesystem::path& prefix(std::int64_t source) const override;
  std::vector<run_source> sources() const override;
  source_sample at(std::int64_t position) const override;
  /// @throws io_error, format_error  as `open`, `packed_rows::row` and `append_pieces`
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const override;
  /// The offsets include the padding between documents.
  void starts_of(const source_sample& sample, std::span<const piece> pieces,
                 std::vector<std::int64_t>& out) const override;
  /// The range between two adjacent boundaries contains one document and its padding.
  void text_of(std::int64_t position, bool boundaries, sample_text& out) const override;
  /// @throws io_error, format_error  as `open` and `packed_rows::rows_of`
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const override;
  std::int64_t taken(std::int64_t source, std::int64_t positions) const override;
  /// A round (see `sample_round`) is one epoch. It serves each row once, so it serves each token
  /// once that is not left out.
  sample_round round_of(std::int64_t source, std::int64_t k) const override;
  /// The documents that are longer than a row, if they are left out.
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const override;
  void check_steps(const batch_steps& steps) const override;
  run_state description() const override;

 private:
  struct contents;

  static source_pointer open_anew(const contents& of, std::int64_t s,
                                  std::shared_ptr<const row_plan> plan);
  static source_pointer open_again(const contents& of, std::int64_t s);

  std::shared_ptr<contents> shared_;
};

}  // namespace millrace::dataset
