// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/token_texts.hpp>

// Example:
//
//     // How often do the ids 464, 3290 follow each other? The first ten places are in found.hits.
//     const millrace::dataset::indexed_dataset data("web_text_document");
//     const auto found = millrace::dataset::search_ids(data, {{464, 3290}});
//     std::cout << found.queries[0].hits << " hits\n";

/// Searches for ids, texts and patterns in a dataset. Every hit lies inside one document.
namespace millrace::dataset {

namespace detail {
struct text_queries;
}  // namespace detail

/// A place where a query was found.
struct search_hit {
  std::int64_t document = 0;
  std::int64_t token = 0;   ///< offset in the document of the first token that the hit touches
  std::int64_t skip = 0;    ///< bytes of this token's text before the hit; 0 in a search for ids
  std::int64_t query = 0;   ///< index in the list of queries
  std::int64_t tokens = 0;  ///< number of tokens that the hit touches
  /// Bytes [begin, end) of the document's text; 0 in a search for ids.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool ends_inside = false;  ///< the text of the last token continues after the hit
  /// The text directly before the hit, that of the hit, and directly after it; see
  /// `search_options::context_bytes`. Each has whole characters only, unless the hit cuts one.
  std::string before = {}, text = {}, after = {};

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  friend auto operator<=>(const search_hit&, const search_hit&) = default;
};

struct query_count {
  std::int64_t hits = 0;       ///< overlapping hits of a text or of ids count, too
  std::int64_t documents = 0;  ///< documents with at least one hit
};

struct search_result {
  std::vector<query_count> queries;
  std::vector<search_hit> hits;    ///< the first ones, by document, token, byte and query
  std::int64_t hit_count = 0;      ///< the hits of all queries
  std::int64_t hit_documents = 0;  ///< documents with a hit of any query
  std::int64_t documents = 0;      ///< documents in the dataset
  std::int64_t tokens = 0;         ///< tokens in the dataset
};

struct search_options {
  int workers = 1;              ///< number of threads, at least 1; the result does not depend on it
  std::int64_t most_hits = 10;  ///< maximum size of `search_result::hits`
  /// Size of `search_hit::before` and `after`, and maximum size of its `text`; 0: leave them empty.
  std::size_t context_bytes = 0;
  /// Number of tokens that a thread searches at a time, at least 1; the result does not depend on
  /// it.
  std::int64_t block_tokens = std::int64_t{1} << 18;
  /// Called now and then with the number of tokens searched so far. Never called by two threads at
  /// once. It may throw to stop the search.
  std::function<void(std::int64_t tokens)> progress = {};
};

/// Searches for sequences of ids.
///
/// @throws config_error  there is no query, or one is empty; or the tokens are floats
/// @throws format_error  an entry of the `.idx` is wrong
/// @throws io_error      a part of a file cannot be read or is missing. Then open the dataset again
///                       before the next search: in this object, zeros are in place of that part.
MILLRACE_EXPORT search_result search_ids(const indexed_dataset& data,
                                         const std::vector<std::vector<std::int64_t>>& queries,
                                         const search_options& options = {});

/// What the text of a document is.
struct text_rules {
  /// The texts of tokens, if they describe the text of a document. Else null.
  std::shared_ptr<const formats::token_texts> table;
  /// Decodes a whole document. Used without a `table`; must be thread-safe.
  std::function<std::string(std::span<const std::int64_t> ids)> decode = {};
};

/// Searches for texts in the decoded text of documents. A hit may begin and end inside a token. An
/// object serves any number of datasets, and any number of threads at once.
///
/// With a `text_rules::table`, a search for few and rare texts does not decode everything. It finds
/// the tokens that can contain a certain byte of a query, and decodes their surroundings.
class MILLRACE_EXPORT text_search {
 public:
  /// @throws config_error  there is no query, or one is empty
  text_search(std::vector<std::string> queries, text_rules rules);
  ~text_search();

  /// @throws config_error, format_error, io_error  as search_ids
  /// @throws any exception of `text_rules::decode`
  search_result in(const indexed_dataset& data, const search_options& options = {}) const;

 private:
  std::unique_ptr<detail::text_queries> own_;
};

/// Finds the first match in `text` that begins at or after `from`, as bytes [begin, end). If
/// `not_empty`, an empty match at `from` does not count. It may look at the text before `from`.
using find_match = std::function<std::optional<std::pair<std::size_t, std::size_t>>(
    std::string_view text, std::size_t from, bool not_empty)>;

/// Searches for a pattern in the decoded text of documents, one document at a time. Matches do not
/// overlap; empty matches count, as in Python's `re.finditer`.
///
/// @param make_finder  called once for each thread that searches
/// @throws config_error, format_error, io_error  as search_ids
/// @throws any exception of the given functions
MILLRACE_EXPORT search_result search_pattern(const indexed_dataset& data,
                                             const std::function<find_match()>& make_finder,
                                             const text_rules& rules,
                                             const search_options& options = {});

}  // namespace millrace::dataset
