// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/convert.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/packing/packed_rows.hpp>
#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/detail/packing/row_plan.hpp>
#include <millrace/dataset/detail/packing/row_table.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/detail/dataset_files.hpp>
#include <millrace/io/detail/packed_parquet_writer.hpp>
#include <millrace/io/file_ops.hpp>

#include "token_source.hpp"
#include "token_target.hpp"

namespace millrace::dataset::detail {

MILLRACE_INLINE void check_packing(const bridge_packing& packing) {
  if (packing.seq_len < 1) {
    throw config_error("--seq-length is required to pack rows: the positions of a row");
  }
  if (packing.algorithm == packing_algorithm::best_fit) {
    throw config_error(
        "--packing best_fit cuts documents, but those of packed rows are whole; expected "
        "first_fit_decreasing, first_fit_shuffle, modified_first_fit_decreasing or one_per_row");
  }
  if (packing.pad_documents_to < 1 || packing.seq_len % packing.pad_documents_to != 0) {
    throw config_error("--pad-documents-to " + std::to_string(packing.pad_documents_to) +
                       ": expected a number that divides --seq-length, which is " +
                       std::to_string(packing.seq_len));
  }
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (packing.pad_documents_to > 1 && !packing.pad) {
    throw config_error("--pad-id is required to pad documents: the eos of Bridge's tokenizer");
  }
  if (packing.pad && (*packing.pad < 0 || *packing.pad > most)) {
    throw config_error("--pad-id " + std::to_string(*packing.pad) + ": expected 0 to " +
                       std::to_string(most));
  }
}

/// The documents of a dataset as packed rows need them: ids as int32, masks as bytes.
class row_documents {
 public:
  explicit row_documents(const token_source& source)
      : data_(*source.data),
        mask_(source.mask ? &*source.mask : nullptr),
        token_bytes_(formats::size_bytes(data_.type())),
        watch_(data_.stream().bytes()) {
    if (mask_ == nullptr) return;
    mask_watch_ = lost_page_watch(mask_->bytes());
    mask_->verify();
  }

  /// Appends the ids of a document to `ids` and Bridge's mask to `loss_mask`: entry i says whether
  /// the model learns to predict token i + 1 of the document; the last one is 0.
  ///
  /// @throws format_error  an id does not fit in an int32 or is negative, or the dataset is damaged
  void append(std::int64_t document, std::vector<std::int32_t>& ids,
              std::vector<std::uint8_t>& loss_mask) {
    const std::size_t begin = ids.size();
    const document_range range = data_.document(document);
    for (std::int64_t s = range.first; s < range.last; ++s) {
      const token_view tokens = data_.sequence(s);
      const std::size_t at = ids.size();
      ids.resize(at + static_cast<std::size_t>(tokens.size()));
      append_ids(document, tokens, std::span(ids).subspan(at));
      const auto first =
          static_cast<std::uint64_t>(data_.index().pointers[index(s)]) / token_bytes_;
      for (std::size_t i = at == begin ? 1 : 0; i < ids.size() - at; ++i) {
        loss_mask.push_back(mask_ == nullptr || mask_->bits()[first + i] ? 1 : 0);
      }
    }
    if (ids.size() != begin) loss_mask.push_back(0);
    watch_.check_there(data_.bin_path());
    if (mask_ != nullptr) mask_watch_.check_there(mask_->path());
  }

 private:
  static std::size_t index(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }

  void append_ids(std::int64_t document, const token_view& tokens,
                  std::span<std::int32_t> out) const {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    for (std::int64_t i = 0; i < tokens.size(); ++i) {
      const std::int64_t id = tokens[i];
      if (id < 0 || id > most) {
        throw format_error(data_.bin_path(), 0,
                           "token " + std::to_string(i) + " of document " +
                               std::to_string(document) + " is " + std::to_string(id) +
                               ", but packed rows hold ids from 0 to " + std::to_string(most) +
                               "; nothing was written");
      }
      out[index(i)] = static_cast<std::int32_t>(id);
    }
  }

  const indexed_dataset& data_;
  const token_mask* mask_;
  std::uint64_t token_bytes_;
  lost_page_watch watch_;
  lost_page_watch mask_watch_;
};

/// A number with two decimals at most, as Python prints `round(value, 2)`.
MILLRACE_INLINE std::string two_decimals(double value) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string number = text.data();
  if (number.ends_with("0")) number.pop_back();
  return number;
}

/// What Megatron-Bridge calls packing metadata.
struct packing_figures {
  std::int64_t documents = 0;
  std::int64_t positions = 0;  // of documents with their padding
  std::int64_t longest = 0;
  std::int64_t most_documents = 0;  // in a row
  std::int64_t fewest_positions = std::numeric_limits<std::int64_t>::max();

  std::string json(std::int64_t rows, std::int64_t seq_len) const {
    const auto count = static_cast<double>(rows);
    return "[{\"dataset_max_seqlen\": " + std::to_string(longest) +
           ", \"max_samples_per_bin\": " + std::to_string(most_documents) +
           ", \"packing_factor\": " + two_decimals(static_cast<double>(documents) / count) +
           ", \"packing_efficiency\": " +
           two_decimals(static_cast<double>(positions) / count / static_cast<double>(seq_len) *
                        100) +
           ", \"pack_size\": " + std::to_string(seq_len) +
           ", \"min_packed_seqlen\": " + std::to_string(fewest_positions) + "}]\n";
  }
};

MILLRACE_INLINE std::string plural(std::int64_t count, const std::string& one,
                                   const std::string& many) {
  return std::to_string(count) + ' ' + (count == 1 ? one : many);
}

/// Rows of which each position has a label, as Bridge packs them.
MILLRACE_INLINE packing_options options_of(const bridge_packing& packing) {
  return {.seq_len = packing.seq_len,
          .pad_documents_to = packing.pad_documents_to,
          .algorithm = packing.algorithm,
          .seed = packing.seed,
          .last_token_as_label = true};
}

/// Lists the documents that are in no row.
MILLRACE_INLINE void list_documents_left_out(const row_plan& plan, std::int64_t seq_len,
                                             conversion& done) {
  for (std::int64_t row = 0; row < plan.row_count(); ++row) {
    done.documents += std::ssize(plan.documents_of(row));
  }
  done.left_out = plan.document_count() - done.documents;
  if (plan.overlong() != 0) {
    done.lost.push_back(plural(plan.overlong(), "document that takes", "documents that take") +
                        " more than the " + std::to_string(seq_len) +
                        " positions of a row; the first is document " +
                        std::to_string(plan.first_overlong()) + ", which takes " +
                        std::to_string(plan.first_overlong_length()));
  }
  const std::int64_t without_label = done.left_out - plan.overlong();
  if (without_label != 0) {
    done.lost.push_back(plural(without_label, "document", "documents") +
                        " of fewer than two tokens, which predict nothing");
  }
}

MILLRACE_INLINE void convert_to_rows(const token_source& source,
                                     const std::filesystem::path& prefix,
                                     const convert_options& options, conversion& done) {
  const bridge_packing& packing = options.packing;
  check_packing(packing);
  const indexed_dataset& data = *source.data;
  const index_columns columns(data);
  const packed_rows packed(columns, options_of(packing));
  const row_plan& plan = *packed.plan();
  list_documents_left_out(plan, packing.seq_len, done);
  refuse_losses(done.lost, options);
  if (plan.row_count() == 0) {
    throw config_error(data.prefix().string() + " has no document that fits in a row");
  }

  const io::dataset_paths paths(prefix);
  const auto rows_path = paths.with(".idx.parquet");
  const auto figures_path = paths.with(".packing.json");
  check_folder(prefix);
  for (const auto& path : {rows_path, figures_path}) {
    check_new_file(path, source, options.overwrite);
  }
  io::packed_parquet_writer writer(io::atomic_file(rows_path), {.zstd = packing.zstd});
  io::atomic_file figures_file(figures_path);
  row_documents documents(source);
  packing_figures figures;
  figures.documents = done.documents;
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> loss_mask;
  std::vector<std::int32_t> starts;
  done.rows = plan.row_count();
  done.padding = done.rows * packing.seq_len;
  done.tokens = 0;
  for (std::int64_t row = 0; row < done.rows; ++row) {
    ids.clear();
    loss_mask.clear();
    starts.clear();
    std::int64_t used = 0;
    for (const std::uint32_t document : plan.documents_of(row)) {
      const std::size_t begin = ids.size();
      starts.push_back(static_cast<std::int32_t>(begin));
      documents.append(document, ids, loss_mask);
      const auto tokens = static_cast<std::int64_t>(ids.size() - begin);
      const std::int64_t positions =
          share_of({document, 0, tokens}, packing.pad_documents_to, true);
      ids.resize(begin + static_cast<std::size_t>(positions) + 1,
                 static_cast<std::int32_t>(packing.pad.value_or(0)));
      loss_mask.resize(ids.size(), 0);
      done.tokens += tokens;
      done.padding -= tokens - 1;
      used += positions;
      figures.longest = std::max(figures.longest, positions);
    }
    if (used > packing.seq_len) {
      throw format_error(data.prefix().string() + ".idx", 0,
                         "the documents of row " + std::to_string(row) + " take " +
                             std::to_string(used) + " positions, expected at most " +
                             std::to_string(packing.seq_len) +
                             ": the dataset changed while it was being packed");
    }
    figures.positions += used;
    figures.most_documents = std::max(figures.most_documents, std::ssize(starts));
    figures.fewest_positions = std::min(figures.fewest_positions, used);
    writer.add_row(ids, loss_mask, starts);
    if (options.progress) options.progress(done.tokens, source.tokens);
  }
  writer.finish();
  const std::string json = figures.json(done.rows, packing.seq_len);
  figures_file.append(std::as_bytes(std::span(json)));
  for (io::atomic_file* file : {&figures_file, &writer.file()}) file->sync();
  // Old rows must not lie beside new metadata, even if the process is killed here.
  if (io::remove_if_exists(rows_path)) io::sync_folder(io::parent_folder(prefix));
  figures_file.commit();
  writer.file().commit();
  done.files = {rows_path, figures_path};
}

}  // namespace millrace::dataset::detail
