// SPDX-License-Identifier: Apache-2.0
#include "packed_rows_source.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/dataset/convert.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/detail/packed_parquet.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>

#include "convert_ids.hpp"
#include "token_source.hpp"
#include "token_target.hpp"

namespace millrace::dataset::detail {

/// Adds the names that are not yet in the list.
MILLRACE_INLINE void add_names(const std::vector<std::string>& from,
                               std::vector<std::string>& names) {
  for (const std::string& name : from) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

MILLRACE_INLINE void open_packed_rows(std::span<const std::filesystem::path> inputs,
                                      const convert_options& options, token_source& source) {
  if (!options.open_packed_rows) {
    throw config_error("convert_options::open_packed_rows is required to read packed rows");
  }
  if (options.to != token_format::megatron) {
    throw config_error(
        "packed rows become a dataset; convert them --to megatron first, and then the dataset "
        "--to " +
        std::string(name(options.to)));
  }
  if (options.type || options.bod || !options.boundaries.empty()) {
    throw config_error(
        "packed rows have ids of int32, and say where their sequences begin: --dtype, --bod-id and "
        "--boundaries do not apply");
  }
  // What a footer says of its file is not checked, so a large number must not wrap.
  constexpr std::uint64_t most_tokens = std::uint64_t{1} << 40;
  std::int64_t rows = 0;
  std::vector<std::string> other_columns;
  std::vector<std::int32_t> starts;
  for (const auto& path : inputs) {
    const packed_rows_file file = options.open_packed_rows(path);
    for (; file.next_starts(starts); ++rows) source.documents += std::ssize(starts);
    add_names(file.other_columns, other_columns);
    source.files.push_back(
        {path, 0, static_cast<std::int64_t>(std::min(file.tokens, most_tokens))});
  }
  if (rows == 0) {
    throw config_error(inputs.front().string() +
                       (inputs.size() == 1 ? " has" : " and the other inputs have") +
                       " no packed row");
  }
  source.type = formats::dtype::int32;
  if (source.documents != rows) {
    source.lost.push_back("the " + std::to_string(rows) + (rows == 1 ? " row" : " rows") +
                          " into which " + std::to_string(source.documents) +
                          " sequences are packed; each sequence becomes a document");
  }
  if (other_columns.empty()) return;
  std::string names;
  for (const std::string& each : other_columns) {
    names += (names.empty() ? "" : ", ") + formats::in_quotes(each);
  }
  source.lost.push_back((other_columns.size() == 1 ? "the column " : "the columns ") + names +
                        ", which Megatron-Bridge does not read");
}

/// Appends rows to a dataset, many at a time.
class row_copier {
 public:
  row_copier(const convert_options& options, token_target& target, conversion& done)
      : options_(options), target_(target), done_(done), ends_with_eod_(options.eod.has_value()) {}

  void append(const std::filesystem::path& path, std::int64_t number, const packed_row& row) {
    const auto refuse = [&](const std::string& problem) {
      throw format_error(path, row.offset, "row " + std::to_string(number) + ": " + problem);
    };
    const std::string fault = formats::packed_row_fault(
        std::span(row.ids), std::span(row.loss_mask), std::span(row.starts));
    if (!fault.empty()) refuse(fault);
    formats::with_type(target_.type(), [&]<class To>(To) {
      if constexpr (std::is_integral_v<To>) append_ids<To>(row, refuse);
    });
    for (std::size_t i = 0; i < row.starts.size(); ++i) {
      const auto begin = static_cast<std::size_t>(row.starts[i]);
      const auto end =
          i + 1 < row.starts.size() ? static_cast<std::size_t>(row.starts[i + 1]) : row.ids.size();
      append_sequence(row, begin, end);
    }
    done_.tokens += std::ssize(row.ids);
    done_.documents += std::ssize(row.starts);
    done_.inputs.back().documents += std::ssize(row.starts);
    ++done_.rows;
    if (ids_.size() >= full_bytes) flush();
  }

  /// Appends what is left.
  void finish() {
    flush();
    done_.ends_with_eod = ends_with_eod_;
  }

 private:
  static constexpr std::size_t full_bytes = std::size_t{1} << 18;

  template <class To, class Refuse>
  void append_ids(const packed_row& row, const Refuse& refuse) {
    const std::size_t count = row.ids.size();
    const std::size_t begin = ids_.size();
    ids_.resize(begin + count * sizeof(To));
    if (convert_ids(row.ids.data(), reinterpret_cast<To*>(ids_.data() + begin), count)) return;
    const std::int32_t* const bad = first_bad_id<To>(row.ids.data(), count);
    refuse("id " + std::to_string(bad - row.ids.data()) + " is " + std::to_string(*bad) +
           ", but the output holds ids from 0 to " +
           std::to_string(std::numeric_limits<To>::max()) + "; nothing was written");
  }

  void append_sequence(const packed_row& row, std::size_t begin, std::size_t end) {
    target_.append_end(done_.tokens + static_cast<std::int64_t>(end));
    if (begin == end) {
      ++done_.empty_documents;
      return;
    }
    if (options_.eod && row.ids[end - 1] != *options_.eod) ends_with_eod_ = false;
    // Entry i of Bridge's mask is about token i + 1, so nothing predicts the first token of a
    // sequence, and Bridge drops the last entry.
    mask_.append_word(0, 1);
    for (std::size_t at = begin; at + 1 < end;) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(64, end - 1 - at));
      std::uint64_t word = 0;
      for (unsigned k = 0; k < part; ++k) {
        word |= static_cast<std::uint64_t>(row.loss_mask[at + k]) << k;
      }
      mask_.append_word(word, part);
      at += part;
    }
  }

  void flush() {
    target_.append(ids_);
    target_.append_mask(mask_.bits());
    ids_.clear();
    mask_.clear();
  }

  const convert_options& options_;
  token_target& target_;
  conversion& done_;
  bool ends_with_eod_;
  // Of rows that are not yet appended. The bytes of every row are a multiple of the size of an id.
  std::vector<std::byte> ids_;
  formats::bit_buffer mask_;
};

/// The size and the checksum of a file.
MILLRACE_INLINE converted_input checksum_of(const std::filesystem::path& path) {
  converted_input input{.path = path.string()};
  const io::unique_fd fd = io::open_read_only(path, O_NONBLOCK);
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  while (const std::size_t found = io::pread_some(fd, bytes, input.bytes, path)) {
    input.crc32c = formats::crc32c(std::span(bytes).first(found), input.crc32c);
    input.bytes += found;
  }
  return input;
}

MILLRACE_INLINE void copy_packed_rows(const token_source& source, const convert_options& options,
                                      token_target& target, conversion& done) {
  row_copier copier(options, target, done);
  done.tokens = 0;
  packed_row row;
  for (const token_file& file : source.files) {
    done.inputs.push_back(checksum_of(file.path));
    const packed_rows_file opened = options.open_packed_rows(file.path);
    for (std::int64_t number = 0; opened.next_row(row); ++number) {
      copier.append(file.path, number, row);
      if (options.progress) options.progress(done.tokens, std::max(done.tokens, source.tokens));
    }
  }
  copier.finish();
  if (done.documents != source.documents) {
    throw error("the packed rows had " + std::to_string(source.documents) + " sequences, and now " +
                std::to_string(done.documents) +
                ": a file changed while it was being read; nothing was written");
  }
}

}  // namespace millrace::dataset::detail
