// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/rows.hpp>

namespace millrace::dataset {

struct packing_options {
  std::int64_t seq_len = 0;           ///< tokens of a row
  std::int64_t pad_documents_to = 1;  ///< see `best_fit_options`
  std::int64_t first_document = 0;    ///< documents from here on
  std::int64_t last_document = -1;    ///< up to but without this one; -1: all
  int threads = 0;                    ///< that make the table; 0: as many as there are processors
};

/// How many rows each block of documents makes: all that has to be known of the whole dataset to
/// find any row of it. 8 bytes for 4,096 documents.
struct row_table {
  formats::rows_header header;
  std::vector<std::int64_t> ends;  ///< [blocks]: rows up to each block's end
  bool was_cached = false;         ///< read from a file, not made
  std::string not_written;         ///< why it could not be kept for the next time, if it could not

  std::int64_t row_count() const noexcept { return ends.empty() ? 0 : ends.back(); }
};

/// Packs all blocks, each by one of the threads, and keeps how many rows each has.
///
/// @throws config_error  as `check`, or documents that the dataset has not.
/// @throws format_error, io_error  as for `document_lengths`.
MILLRACE_EXPORT row_table make_row_table(const index_columns& columns,
                                         const packing_options& options);

/// The file beside the dataset in which the table is kept: PREFIX.rows-4096; with
/// `pad_documents_to` 16, PREFIX.rows-4096-16; of a part, PREFIX.rows-4096-1-FIRST-LAST.
MILLRACE_EXPORT std::filesystem::path row_table_path(const index_columns& columns,
                                                     const packing_options& options);

/// The table in `path` if it is of this dataset and these options, else a new one, which is then
/// written there. A file that is broken, of other options, or of a dataset that had another `.sum`
/// or (where there is none) other lengths, is never used; one that cannot be written is no error.
///
/// Where there is a `.sum`, this is O(blocks); else the lengths and the document index are read.
///
/// @param path  a file, e.g. `row_table_path`, or nothing to keep none
/// @throws config_error, format_error, io_error  as `make_row_table`.
MILLRACE_EXPORT row_table open_row_table(const index_columns& columns,
                                         const packing_options& options,
                                         const std::filesystem::path& path);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Whether a table is that of the dataset. `asked` has all that is known without reading.
MILLRACE_EXPORT bool fits(const formats::rows_header& found, const formats::rows_header& asked,
                          const index_columns& columns);

}  // namespace detail

}  // namespace millrace::dataset
