// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>

// Example:
//
//     // Two shards of llm.c, in this order, become web.bin and web.idx.
//     const std::filesystem::path shards[] = {"web_000000.bin", "web_000001.bin"};
//     const auto done = millrace::dataset::convert(shards, "web", {.eod = 50256});
//     std::cout << done.documents << " documents\n";

/// Converts datasets from and to the token files of other programs. Every token is kept, in order.
/// Specification of the formats: formats/spec/token_arrays.md, packed_parquet.md.
namespace millrace::dataset {

/// How a program stores the tokens of many documents.
enum class token_format : std::uint8_t {
  megatron,  ///< PREFIX.bin and PREFIX.idx
  nanoset,   ///< datatrove and nanotron: NAME.ds, NAME.ds.index, NAME.ds.metadata
  olmo,      ///< OLMo and dolma: NAME.npy, in spite of its name without a header, and NAME.csv.gz
  llm_c,     ///< llm.c: a header and tokens; documents are not marked
  nanogpt,   ///< nanoGPT: only tokens; documents are not marked
  bridge,    ///< Megatron-Bridge: NAME.idx.parquet, packed rows; from and to a dataset
};

/// "megatron", "nanoset", "olmo", "llm.c", "nanogpt" or "bridge".
MILLRACE_EXPORT std::string_view name(token_format format) noexcept;
/// The format with this name; nullopt if there is none.
MILLRACE_EXPORT std::optional<token_format> token_format_of(std::string_view name) noexcept;

/// An array that was converted to a dataset.
struct converted_input {
  std::string path;
  std::uint64_t bytes = 0;     ///< size of the file
  std::uint32_t crc32c = 0;    ///< CRC-32C of the file
  std::int64_t documents = 0;  ///< documents that end in this file
};

/// What `convert` did.
struct conversion {
  token_format from = token_format::megatron;
  token_format to = token_format::megatron;
  formats::dtype type = formats::dtype::uint16;  ///< of the output; int32 is uint32 in arrays
  std::int64_t tokens = 0;                       ///< in the output, without padding
  std::int64_t documents = 0;  ///< in the output; 0 if the source does not say where documents end
  std::int64_t sequences = 0;  ///< of the dataset; 0 in other formats
  std::int64_t empty_documents = 0;
  bool ends_with_eod = false;     ///< `convert_options::eod` was given, and ends every document
  std::vector<std::string> lost;  ///< what the format of the output cannot hold, one sentence each
  std::vector<std::filesystem::path> files;  ///< that were written
  std::vector<converted_input> inputs;       ///< only if arrays became a dataset
  std::string tokenizer;                     ///< that a `.ds.metadata` names; or empty
  std::string sum_root;                      ///< root of PREFIX.sum; empty in other formats
  std::string mask_root;                     ///< root of PREFIX.mask; empty if there is none
  std::int64_t trained = 0;                  ///< with a PREFIX.mask: tokens to be predicted
  std::int64_t rows = 0;                     ///< packed rows
  std::int64_t left_out = 0;                 ///< documents that are in no packed row
  std::int64_t padding = 0;                  ///< positions of packed rows that predict no token

  /// The share of padding in packed rows.
  double padding_share(std::int64_t seq_len) const noexcept {
    return rows == 0 ? 0.0 : static_cast<double>(padding) / static_cast<double>(rows * seq_len);
  }
};

/// How `token_format::bridge` packs documents. A document of n tokens takes n - 1 positions,
/// because its last token is only a label.
struct bridge_packing {
  std::int64_t seq_len = 0;  ///< positions of a row, Bridge's `packed_sequence_size`; required
  packing_algorithm algorithm = packing_algorithm::first_fit_shuffle;  ///< any but `best_fit`
  std::uint32_t seed = 0;  ///< of numpy.random, for the first-fit algorithms
  /// Positions of a document are padded to a multiple of this, Bridge's `pad_seq_to_mult`.
  std::int64_t pad_documents_to = 1;
  /// The id of padding, required to pad documents. Bridge expects the eos of its tokenizer.
  std::optional<std::int64_t> pad = {};
  /// Appends a Zstandard frame with the page to `out`. Empty: pages are not compressed.
  std::function<void(std::span<const std::byte> page, std::vector<std::byte>& out)> zstd = {};
};

/// A packed row of Megatron-Bridge. Specification: formats/spec/packed_parquet.md.
struct packed_row {
  std::vector<std::int32_t> ids;        ///< of all sequences, one after the other
  std::vector<std::int32_t> loss_mask;  ///< for each id: 1 if the loss of its label counts, else 0
  std::vector<std::int32_t> starts;     ///< at which id each sequence starts
  std::uint64_t offset = 0;             ///< byte of the file to name if the row is damaged
};

/// An open file of packed rows. Both functions return false after the last row. `convert` calls
/// only one of them, and checks what a row has.
struct packed_rows_file {
  std::uint64_t tokens = 0;  ///< about as many, to show progress and to check the disk
  std::vector<std::string> other_columns = {};  ///< which have no place in a dataset
  std::function<bool(std::vector<std::int32_t>& starts)> next_starts = {};
  std::function<bool(packed_row& row)> next_row = {};
};

struct convert_options {
  std::optional<token_format> from;  ///< empty: recognized, as `recognize` says
  token_format to = token_format::megatron;
  /// Type of the tokens in arrays that do not tell it: uint16 or int32.
  std::optional<formats::dtype> type;
  std::optional<formats::dtype> output_type;  ///< empty: the type of the source, if possible
  /// For arrays without document ends: the id that ends each document, and remains its last token;
  /// or the id that begins each document. Tokens after the last eod are a document, too.
  std::optional<std::int64_t> eod;
  std::optional<std::int64_t> bod;
  /// A text file that says where documents end: lines of END or BEGIN,END, in tokens from the start
  /// of the first input. It takes precedence over all else.
  std::filesystem::path boundaries = {};
  std::int64_t shard_tokens = 0;  ///< llm.c and nanoGPT: tokens per file; 0: all in one file
  bool lossy = false;             ///< convert in spite of losses
  bool overwrite = false;         ///< replace files that exist
  std::string tokenizer = {};     ///< name for the `.ds.metadata`; empty: that of the source
  bridge_packing packing = {};    ///< only for `token_format::bridge`
  /// Opens a text file, decompressed. Empty: compressed files are refused.
  std::function<std::unique_ptr<std::istream>(const std::filesystem::path& path)> open_text = {};
  /// Opens a file of packed rows; required to read `token_format::bridge`. Empty: it is refused.
  std::function<packed_rows_file(const std::filesystem::path& path)> open_packed_rows = {};
  /// Appends the next part of a gzip stream to `out`; required for OLMo's `.csv.gz`.
  std::function<void(std::string_view text, bool is_last, std::string& out)> gzip = {};
  /// Returns the contents of PREFIX.meta for a new dataset; empty: it gets none.
  std::function<std::string(const conversion& done)> meta = {};
  /// Called now and then with the number of tokens copied so far. It may throw to stop.
  std::function<void(std::int64_t tokens, std::int64_t all_tokens)> progress = {};
};

/// Recognizes the format of a file or prefix: PREFIX with a PREFIX.idx, or the path of either;
/// NAME.ds; NAME.parquet and NAME.pq; a file that begins with a magic of llm.c or of Parquet.
/// Returns nullopt for all else.
///
/// @throws io_error  a file cannot be read
MILLRACE_EXPORT std::optional<token_format> recognize(const std::filesystem::path& path);

/// Converts `inputs`, in this order, into one dataset or array at `output_prefix`. Files get their
/// final names after all of them are complete. Needs constant memory; to write packed rows, that of
/// a `row_plan`: 12 bytes per document and 24 per row; to read them, that of the longest row.
///
/// The new files are OUTPUT_PREFIX.bin, .idx and .sum (and .meta, .src); .ds, .ds.index and
/// .ds.metadata; .npy and .csv.gz; .idx.parquet and .packing.json (Bridge's packing metadata), from
/// one dataset; or .bin. With `shard_tokens`, they are OUTPUT_PREFIX_000000.bin and so on. A
/// dataset that is made from a dataset keeps its sequences, modes and PREFIX.src. PREFIX.mask,
/// NAME.ds.loss and OLMo's mask of labels become each other. Packed rows become a dataset: each
/// sequence a document, and their masks PREFIX.mask.
///
/// @throws config_error  the format is unknown, an option is missing or wrong, a file exists, or
///                       something would be lost and `lossy` is false; nothing was written
/// @throws format_error  an input is damaged, or has an id that the type of the output cannot hold
/// @throws io_error, error  a file cannot be read or written; the disk is too small
MILLRACE_EXPORT conversion convert(std::span<const std::filesystem::path> inputs,
                                   const std::filesystem::path& output_prefix,
                                   const convert_options& options);

}  // namespace millrace::dataset
