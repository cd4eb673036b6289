// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/instant/document_search.hpp>
#include <millrace/dataset/instant/feistel.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/instant/instant_order.hpp>
#include <millrace/dataset/instant/order_keys.hpp>
#include <millrace/dataset/instant/schedule.hpp>
#include <millrace/dataset/open_pool.hpp>
#include <millrace/dataset/packing/packed_rows.hpp>
#include <millrace/dataset/packing/packed_sample.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

/// How documents are packed, beside what `instant_options` say.
struct packed_options {
  std::int64_t pad_documents_to = 1;  ///< see `best_fit_options`
  int threads = 0;                    ///< that make tables of rows; 0: one a processor
  bool keep_tables = true;            ///< beside the datasets, see `open_row_table`
};

/// Packed rows in the order `instant`, over one dataset or a blend, as a run_order: a row is a
/// sample, and the rows of a source are shuffled each epoch under the tag `bins` of
/// formats/spec/instant_order.md. Blends and their schedule are those of `instant_order`.
///
/// The rows of every source are counted when the run is made (8 bytes for 4,096 documents where
/// their tables are kept); of each its `.idx` alone is read, and a bounded number stays open:
/// mapped, or by pread where maps are refused. Any thread.
class MILLRACE_EXPORT packed_run {
 public:
  /// A source, opened.
  struct open_source {
    open_source(const std::filesystem::path& prefix, const packing_options& options, bool keep);
    open_source(const open_source&) = delete;
    open_source& operator=(const open_source&) = delete;

    const index_columns& columns() const noexcept { return search.columns(); }

    document_search search;
    packed_rows rows;  // of the columns of `search`
  };
  using source_pointer = std::shared_ptr<const open_source>;

  /// What is known of a source without opening it again.
  struct source_info {
    std::string name;
    std::int64_t rows = 0;
    std::int64_t tokens = 0;
    std::uint64_t bin_bytes = 0;
    formats::dtype type = formats::dtype::uint16;
    std::uint64_t hash = 0;  ///< of seed and name
  };

  /// @param options  `most_open` indices are kept open
  /// @throws config_error  an option is out of range, names are not unique, a source has no row, or
  ///                       what `schedule` refuses
  /// @throws io_error, format_error  a dataset cannot be opened, or contradicts itself.
  packed_run(const std::vector<instant_source>& sources, const instant_options& options,
             const packed_options& packing = {});

  std::int64_t end() const noexcept { return shared_->blend->end(); }
  const schedule& blend() const noexcept { return *shared_->blend; }
  std::int64_t seq_len() const noexcept { return shared_->options.seq_len; }
  std::int64_t pad_documents_to() const noexcept { return shared_->packing.pad_documents_to; }
  std::int64_t source_count() const noexcept {
    return static_cast<std::int64_t>(shared_->infos.size());
  }
  const std::filesystem::path& prefix(std::int64_t s) const noexcept {
    return shared_->sources[static_cast<std::size_t>(s)].prefix;
  }
  const source_info& info(std::int64_t s) const noexcept {
    return shared_->infos[static_cast<std::size_t>(s)];
  }

  /// @pre 0 <= position < end()
  source_sample at(std::int64_t position) const noexcept {
    const blend_place place = shared_->blend->at(position);
    return {place.source, place.k};
  }

  /// The epoch and row of a sample.
  packed_place place_of(const source_sample& sample) const noexcept {
    const source_info& of = info(sample.source);
    const std::int64_t epoch = sample.k / of.rows;
    return {epoch, shuffle(of, epoch)(sample.k % of.rows)};
  }

  /// @return tokens of padding, be they behind the row or behind its documents
  /// @throws io_error, format_error  as `open`, packed_rows::row, append_pieces
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    const source_pointer opened = open(sample.source);
    std::vector<packed_part> parts;
    opened->rows.row(place_of(sample).row, parts);
    out.clear();
    for (const packed_part& part : parts) append_pieces(opened->columns(), part, out);
    return seq_len() - token_count(out);
  }

  /// Where in the row the pieces of a sample begin: shares of documents may be padded.
  /// @throws as `pieces`
  void starts_of(const source_sample& sample, std::span<const piece> pieces,
                 std::vector<std::int64_t>& out) const {
    const source_pointer opened = open(sample.source);
    std::vector<packed_part> parts;
    opened->rows.row(place_of(sample).row, parts);
    out.clear();
    std::int64_t share = 0;
    for (const packed_part& part : parts) {
      std::int64_t done = 0;
      for (; done < part.tokens; done += pieces[out.size() - 1].tokens) out.push_back(share + done);
      share += share_of(part, pad_documents_to());
    }
  }

  /// @throws io_error, format_error  as `open`, packed_rows::rows_of
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const;

  std::int64_t taken(std::int64_t source, std::int64_t positions) const noexcept {
    return shared_->blend->taken(source, positions);
  }

  /// An epoch is a round: each row once, and so each token.
  sample_round round_of(std::int64_t source, std::int64_t k) const {
    const std::int64_t rows = info(source).rows;
    const std::int64_t epoch = k / rows;
    return {epoch * rows, (epoch + 1) * rows, 1, "epoch " + std::to_string(epoch)};
  }
  /// None: all documents are packed.
  std::vector<left_out> left_out_of(std::int64_t, const sample_round&) const { return {}; }

  /// A source, opened if it is not. It lives as long as the pointer.
  /// @throws io_error, format_error  it cannot be opened, or is not the one that was counted.
  source_pointer open(std::int64_t s) const { return shared_->pool->get(s); }

  /// What a state says of the order; of its data prefixes, names and weights.
  run_state description() const;

 private:
  struct contents {
    std::vector<instant_source> sources;
    instant_options options;
    packed_options packing;
    std::vector<source_info> infos;
    std::optional<schedule> blend;
    std::optional<open_pool<open_source>> pool;
  };

  static feistel shuffle(const source_info& of, std::int64_t epoch) noexcept {
    return {of.rows, keys_of(absorb(of.hash, static_cast<std::uint64_t>(epoch)))};
  }
  static source_pointer open_anew(const contents& of, std::int64_t s);
  static source_pointer open_again(const contents& of, std::int64_t s);

  std::shared_ptr<contents> shared_ = std::make_shared<contents>();
};

}  // namespace millrace::dataset
