// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/rows.hpp>

namespace millrace::dataset {

struct packing_options {
  std::int64_t seq_len = 0;           ///< tokens per row
  std::int64_t pad_documents_to = 1;  ///< see `best_fit_options`
  std::int64_t first_document = 0;    ///< first document to pack
  std::int64_t last_document = -1;    ///< end, exclusive; -1: all documents
  int threads = 0;                    ///< threads that build the table; 0: one per processor
  packing_algorithm algorithm = packing_algorithm::best_fit;  ///< only `best_fit` has a table
  std::uint32_t seed = 0;            ///< see `row_plan_options`; `best_fit` ignores it
  bool last_token_as_label = false;  ///< see `packed_options`; not with `best_fit`
};

/// The number of rows of each block of documents. With this table, any row can be found without
/// scanning the dataset. Takes 8 bytes per 4,096 documents.
struct row_table {
  formats::rows_header header;
  std::vector<std::int64_t> ends;  ///< [blocks]: cumulative rows, up to each block's end
  bool was_cached = false;         ///< read from a file, not built
  std::string not_used;            ///< why a stored table was not used; empty if there was none
  std::string not_written;         ///< why the table could not be stored; empty if it was stored

  std::int64_t row_count() const noexcept { return ends.empty() ? 0 : ends.back(); }
};

/// The header of the requested table, without the tokens, the root and the CRC.
///
/// @throws config_error  an option is out of range, or the options name documents that do not exist
MILLRACE_EXPORT formats::rows_header row_table_header(const index_columns& columns,
                                                      const packing_options& options);

/// Packs all blocks in parallel, and records the number of rows of each.
///
/// @throws config_error  as `row_table_header`
/// @throws format_error, io_error  as for `document_lengths`.
MILLRACE_EXPORT row_table make_row_table(const index_columns& columns,
                                         const packing_options& options);

/// The path of the file that stores the table, next to the dataset: e.g. PREFIX.rows-4096 for a
/// seq_len of 4,096; PREFIX.rows-4096-16 with a `pad_documents_to` of 16; and
/// PREFIX.rows-4096-1-FIRST-LAST for a range of documents.
MILLRACE_EXPORT std::filesystem::path row_table_path(const index_columns& columns,
                                                     const packing_options& options);

/// Reads the table from `path` if it belongs to this dataset and these options. Otherwise builds
/// the table and writes it there. Does not use a file that is damaged or has other options, or
/// whose dataset has another `.sum` or, if there is no `.sum`, other lengths. `not_used` then says
/// why, with the file and the byte. A failure to write the file is not an error.
///
/// With a `.sum`, reading takes O(blocks). Without it, the lengths and the document index are read.
///
/// @param path  a file, e.g. `row_table_path`; empty: do not store the table
/// @throws config_error, format_error, io_error  as `make_row_table`.
MILLRACE_EXPORT row_table open_row_table(const index_columns& columns,
                                         const packing_options& options,
                                         const std::filesystem::path& path);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Checks that the stored table with the header `found` belongs to the dataset. `asked` has those
/// header fields that are known without reading the dataset.
///
/// @throws format_error  the table belongs to another dataset or other options
MILLRACE_EXPORT void expect_fit(const formats::rows_header& found,
                                const formats::rows_header& asked, const index_columns& columns);

}  // namespace detail

}  // namespace millrace::dataset
