// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/utf8.hpp>

#include "block_search.hpp"
#include "id_scan.hpp"
#include "text_matcher.hpp"
#include "token_decoder.hpp"
#include "token_filter.hpp"

namespace millrace::dataset {

namespace detail {

struct text_queries {
  std::vector<std::string> queries;
  text_rules rules;
  text_matcher matcher;
  std::size_t longest = 0;
  std::once_flag once = {};
  std::optional<token_filter> filter = {};  // made for the first dataset
};

/// The tokens of a document.
template <class T>
std::span<const T> tokens_of(std::span<const T> stream, const document_tokens& document) {
  return stream.subspan(static_cast<std::size_t>(document.begin),
                        static_cast<std::size_t>(document.end - document.begin));
}

/// Decodes whole documents, by a table or by a function.
class document_decoder {
 public:
  explicit document_decoder(const text_rules& rules) : rules_(&rules) {}

  /// The text of a document. With a table, also where the text of each token ends.
  template <class T>
  const decoded_tokens& decode(std::span<const T> tokens) {
    out_.text.clear();
    out_.ends.clear();
    if (rules_->table) {
      token_decoder(*rules_->table).decode(tokens, 0, std::ssize(tokens), out_);
    } else {
      ids_.assign(tokens.begin(), tokens.end());
      out_.text = rules_->decode(ids_);
    }
    return out_;
  }

  /// Sets the token of a hit of which only the bytes are known.
  template <class T>
  void locate(std::span<const T> tokens, search_hit& hit) const {
    const std::vector<std::int64_t> ids(tokens.begin(), tokens.end());
    const auto bytes_of = [&](std::int64_t count) {
      return std::ssize(rules_->decode(std::span(ids).first(static_cast<std::size_t>(count))));
    };
    // The least number of tokens whose text is longer than `byte`, minus 1.
    const auto token_of = [&](std::int64_t byte) {
      std::int64_t low = 0;
      std::int64_t high = std::ssize(ids);
      while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (bytes_of(middle + 1) <= byte) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    hit.token = token_of(hit.begin);
    hit.skip = std::max<std::int64_t>(hit.begin - bytes_of(hit.token), 0);
    if (hit.begin == hit.end) return;
    const std::int64_t last = std::min(token_of(hit.end - 1), std::ssize(ids) - 1);
    hit.tokens = last - hit.token + 1;
    hit.ends_inside = hit.end < bytes_of(last + 1);
  }

 private:
  const text_rules* rules_;
  std::vector<std::int64_t> ids_;
  decoded_tokens out_;
};

/// Sets the tokens of a hit at bytes [begin, end) of a text, and these bytes.
/// @param first  the number of the text's first token in its document
inline void place_hit(const decoded_tokens& text, std::int64_t first, std::size_t begin,
                      std::size_t end, search_hit& hit) {
  const std::int64_t token = text.token_of(begin);
  hit.begin = static_cast<std::int64_t>(begin);
  hit.end = static_cast<std::int64_t>(end);
  hit.token = first + token;
  hit.skip = static_cast<std::int64_t>(begin - text.begin_of(token));
  hit.tokens = 0;
  hit.ends_inside = false;
  if (begin == end) return;
  const std::int64_t last = text.token_of(end - 1);
  hit.tokens = last - token + 1;
  hit.ends_inside = end < text.ends[static_cast<std::size_t>(last)];
}

/// Searches documents one at a time.
/// @param find  find(text, found) calls found(query, begin, end) for each hit
template <class T, class Find>
class document_searcher {
 public:
  document_searcher(const searched_dataset& data, std::span<const T> stream,
                    const text_rules& rules, Find find)
      : data_(&data),
        stream_(stream),
        has_table_(rules.table != nullptr),
        decoder_(rules),
        find_(std::move(find)) {}

  /// Searches the documents that begin in the block.
  void operator()(std::int64_t block_begin, std::int64_t block_end, bool is_last,
                  search_tally& tally) {
    std::int64_t document = data_->first_from(block_begin);
    std::int64_t begin = data_->begin_of(document);
    for (; document < data_->document_count(); ++document) {
      if (begin >= block_end && !is_last) break;
      const document_tokens in{document, begin, data_->begin_of(document + 1)};
      if (in.end < in.begin || in.end > data_->token_count()) return;  // a lost page
      const decoded_tokens& text = decoder_.decode(tokens_of(stream_, in));
      find_(std::string_view(text.text),
            [&](std::int64_t query, std::size_t hit_begin, std::size_t hit_end) {
              if (!tally.count(query, in)) return;
              search_hit hit;
              hit.document = document;
              hit.query = query;
              if (has_table_) {
                place_hit(text, 0, hit_begin, hit_end, hit);
              } else {
                hit.skip = static_cast<std::int64_t>(hit_begin);  // for the order of hits
                hit.begin = static_cast<std::int64_t>(hit_begin);
                hit.end = static_cast<std::int64_t>(hit_end);
              }
              tally.keep(hit);
            });
      begin = in.end;
    }
  }

 private:
  const searched_dataset* data_;
  std::span<const T> stream_;
  bool has_table_;
  document_decoder decoder_;
  Find find_;
};

/// Searches the surroundings of those tokens that can be the anchor of a query.
template <class T>
class window_searcher {
 public:
  window_searcher(const searched_dataset& data, std::span<const T> stream,
                  const text_queries& search, const token_filter& filter)
      : data_(&data),
        stream_(stream),
        search_(&search),
        filter_(&filter),
        decoder_(*search.rules.table) {
    if (!filter.is_useful()) return;
    flags_ = filter.flags_of<T>(*search.rules.table);
    places_.resize(static_cast<std::size_t>(scan_at_once) + 1);
  }

  void operator()(std::int64_t block_begin, std::int64_t block_end, bool /*is_last*/,
                  search_tally& tally) {
    tally_ = &tally;
    block_begin_ = block_begin;
    block_end_ = block_end;
    if (filter_->is_useful()) {
      search_filtered();
    } else {
      search_all();
    }
  }

 private:
  static constexpr std::int64_t scan_at_once = std::int64_t{1} << 13;
  /// Tokens that are decoded together: a text of about 64 KiB.
  static constexpr std::int64_t decode_at_once = std::int64_t{1} << 14;

  /// Tokens [begin, end) of a document. Hits count if their anchor is in [first, last).
  struct window {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  std::int64_t id(std::int64_t token) const {
    return static_cast<std::int64_t>(tokens_[static_cast<std::size_t>(token)]);
  }
  std::int64_t margin() const noexcept { return static_cast<std::int64_t>(search_->longest) - 1; }

  void enter(const document_tokens& document) {
    document_ = document;
    tokens_ = tokens_of(stream_, document);
    start_tokens_ = decoder_.start_tokens(tokens_);
  }

  /// Moves `begin` to a token from which the document can be decoded.
  std::int64_t decodable(std::int64_t begin) const {
    while (begin > 0 && decoder_.is_byte(id(begin)) && decoder_.is_byte(id(begin - 1))) --begin;
    return begin < start_tokens_ ? 0 : begin;
  }
  /// The least token at or before `token` so that those between have at least margin() bytes.
  std::int64_t begin_before(std::int64_t token) const {
    std::int64_t begin = token;
    for (std::int64_t bytes = 0; begin > 0 && bytes < margin();) bytes += size_of(--begin);
    return decodable(begin);
  }
  std::int64_t end_after(std::int64_t token) const {
    std::int64_t end = token + 1;
    const std::int64_t count = std::ssize(tokens_);
    for (std::int64_t bytes = 0; end < count && bytes < margin(); ++end) bytes += size_of(end);
    end = std::max(end, start_tokens_);
    while (end < count && decoder_.is_byte(id(end - 1)) && decoder_.is_byte(id(end))) ++end;
    return end;
  }
  /// Texts at the start of a document may be shorter than those inside; start_tokens() covers
  /// these.
  std::int64_t size_of(std::int64_t token) const {
    return token < start_tokens_ ? 0 : decoder_.size_of(id(token));
  }

  void search_filtered() {
    using unsigned_id = std::make_unsigned_t<T>;
    const auto* const ids = reinterpret_cast<const unsigned_id*>(stream_.data());
    const auto last = static_cast<unsigned_id>(flags_.size() - 1);
    std::optional<window> open;
    for (std::int64_t at = block_begin_; at < block_end_; at += scan_at_once) {
      const auto count = static_cast<std::size_t>(std::min(scan_at_once, block_end_ - at));
      const std::size_t found = scan_flags(ids + at, count, flags_.data(), last, places_.data());
      for (std::size_t i = 0; i < found; ++i) {
        const std::int64_t place = at + places_[i];
        if (place >= document_.end || place < document_.begin) {
          if (open) search(*open);
          open.reset();
          enter(data_->document_at(place, document_));
        }
        const std::int64_t token = place - document_.begin;
        window next{begin_before(token), end_after(token), token, token + 1};
        // Windows that overlap become one, so that their text is decoded once.
        if (open && next.begin < open->end) {
          next.begin = std::min(next.begin, open->begin);
          next.end = std::max(next.end, open->end);
          next.first = open->first;
        } else if (open) {
          search(*open);
        }
        open = next;
      }
    }
    if (open) search(*open);
    document_ = {};
  }

  void search_all() {
    for (std::int64_t at = block_begin_; at < block_end_;) {
      enter(data_->document_at(at, document_));
      const std::int64_t end = std::min(document_.end, block_end_);
      while (at < end) {
        const std::int64_t next = std::min(end, at + decode_at_once);
        const std::int64_t first = at - document_.begin;
        const std::int64_t last = next - document_.begin;
        search({decodable(first), end_after(last - 1), first, last});
        at = next;
      }
    }
  }

  void search(const window& in) {
    text_.text.clear();
    text_.ends.clear();
    decoder_.decode(tokens_, in.begin, in.end, text_);
    const std::size_t first_byte = text_.begin_of(in.first - in.begin);
    const std::size_t last_byte = text_.begin_of(in.last - in.begin);
    search_->matcher.find(text_.text, [&](std::int64_t query, std::size_t begin) {
      const std::size_t anchor = begin + filter_->anchor(query);
      if (anchor < first_byte || last_byte <= anchor) return;
      if (!tally_->count(query, document_)) return;
      search_hit hit;
      hit.document = document_.document;
      hit.query = query;
      place_hit(text_, in.begin, begin,
                begin + search_->queries[static_cast<std::size_t>(query)].size(), hit);
      tally_->keep(hit);
    });
  }

  const searched_dataset* data_;
  std::span<const T> stream_;
  const text_queries* search_;
  const token_filter* filter_;
  token_decoder decoder_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint32_t> places_;

  search_tally* tally_ = nullptr;
  std::int64_t block_begin_ = 0;
  std::int64_t block_end_ = 0;
  document_tokens document_;
  std::span<const T> tokens_;  // those of document_
  std::int64_t start_tokens_ = 0;
  decoded_tokens text_;
};

/// Adds what is known of hits only after the whole document before them was decoded: where their
/// bytes are in the document, and the text around them. Hits are in order, so a document is decoded
/// once, in parts.
template <class T>
class hit_completer {
 public:
  hit_completer(const searched_dataset& data, std::span<const T> stream, const text_rules& rules,
                std::size_t context)
      : data_(&data), stream_(stream), rules_(&rules), context_(context) {}

  void complete(std::vector<search_hit>& hits) {
    document_tokens in;
    for (search_hit& hit : hits) {
      if (in.begin == in.end || hit.document != in.document) {
        in = {hit.document, data_->begin_of(hit.document), data_->begin_of(hit.document + 1)};
        tokens_ = tokens_of(stream_, in);
        decoded_ = 0;
        bytes_ = 0;
      }
      if (rules_->table) {
        complete_by_table(hit);
      } else {
        complete_by_function(hit);
      }
    }
  }

 private:
  void complete_by_table(search_hit& hit) {
    const token_decoder decoder(*rules_->table);
    const auto id = [&](std::int64_t token) {
      return static_cast<std::int64_t>(tokens_[static_cast<std::size_t>(token)]);
    };
    const std::int64_t count = std::ssize(tokens_);
    const std::int64_t start = decoder.start_tokens(tokens_);
    const auto decodable = [&](std::int64_t token) {
      while (0 < token && token < count && decoder.is_byte(id(token)) &&
             decoder.is_byte(id(token - 1))) {
        --token;
      }
      return token < start ? 0 : token;
    };
    // The tokens of the hit and enough others around it.
    std::int64_t begin = hit.token;
    for (std::size_t bytes = 0; begin > 0 && bytes < context_;)
      bytes += static_cast<std::size_t>(decoder.size_of(id(--begin)));
    begin = decodable(begin);
    // The bytes before these tokens, in addition to those that are known from the hit before.
    constexpr std::int64_t at_once = std::int64_t{1} << 14;
    while (decoded_ < begin) {
      std::int64_t end = std::min(begin, std::max(decoded_ + at_once, start));
      while (end < begin && decoder.is_byte(id(end)) && decoder.is_byte(id(end - 1))) ++end;
      text_ = {};
      decoder.decode(tokens_, decoded_, end, text_);
      bytes_ += std::ssize(text_.text);
      decoded_ = end;
    }
    // The hit before may have begun later.
    if (begin < decoded_) {
      if (begin == 0) bytes_ = 0;
      if (begin > 0) {
        text_ = {};
        decoder.decode(tokens_, begin, decoded_, text_);
        bytes_ -= std::ssize(text_.text);
      }
      decoded_ = begin;
    }
    std::int64_t end = std::max(hit.token + std::max<std::int64_t>(hit.tokens, 1), start);
    end = std::min(end, count);
    for (std::size_t bytes = 0; end < count && bytes < context_; ++end)
      bytes += static_cast<std::size_t>(decoder.size_of(id(end)));
    while (0 < end && end < count && decoder.is_byte(id(end)) && decoder.is_byte(id(end - 1)))
      ++end;
    text_ = {};
    decoder.decode(tokens_, begin, end, text_);
    const std::size_t at = text_.begin_of(hit.token - begin) + static_cast<std::size_t>(hit.skip);
    const std::int64_t size = hit.end - hit.begin;
    hit.begin = bytes_ + static_cast<std::int64_t>(at);
    hit.end = hit.begin + size;
    add_context(text_.text, at, static_cast<std::size_t>(size), hit);
  }

  void complete_by_function(search_hit& hit) {
    document_decoder decoder(*rules_);
    decoder.locate(tokens_, hit);
    const decoded_tokens& text = decoder.decode(tokens_);
    add_context(text.text, static_cast<std::size_t>(hit.begin),
                static_cast<std::size_t>(hit.end - hit.begin), hit);
  }

  void add_context(std::string_view text, std::size_t at, std::size_t size, search_hit& hit) const {
    if (context_ == 0) return;
    hit.before =
        without_cut_start(text.substr(at - std::min(at, context_), std::min(at, context_)));
    hit.text = without_cut_end(text.substr(at, std::min(size, context_)), size > context_);
    const std::string_view rest = text.substr(at + size);
    hit.after = without_cut_end(rest.substr(0, context_), rest.size() > context_);
  }

  static bool continues(char byte) noexcept {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
  }
  /// Without the rest of a character that begins before the text.
  static std::string_view without_cut_start(std::string_view text) {
    std::size_t skip = 0;
    while (skip < text.size() && skip < 3 && continues(text[skip])) ++skip;
    return text.substr(skip);
  }
  /// Without the beginning of a character that ends after the text.
  static std::string_view without_cut_end(std::string_view text, bool is_cut) {
    std::size_t size = text.size();
    for (std::size_t back = 1; is_cut && back <= 3 && back <= text.size(); ++back) {
      if (continues(text[text.size() - back])) continue;
      if (formats::utf8_sequence_bytes(text.substr(text.size() - back)) == 0) {
        size = text.size() - back;
      }
      break;
    }
    return text.substr(0, size);
  }

  const searched_dataset* data_;
  std::span<const T> stream_;
  const text_rules* rules_;
  std::size_t context_;
  std::span<const T> tokens_;  // those of the document of the hit before
  std::int64_t decoded_ = 0;   // so many of them have bytes_ bytes
  std::int64_t bytes_ = 0;
  decoded_tokens text_;
};

template <class T>
search_result completed(search_tally tally, const searched_dataset& data, std::span<const T> stream,
                        const text_rules& rules, const search_options& options) {
  search_result result = std::move(tally).result(data);
  hit_completer<T>(data, stream, rules, options.context_bytes).complete(result.hits);
  data.check_there();
  return result;
}

MILLRACE_INLINE void expect_rules(const text_rules& rules) {
  if (!rules.table && !rules.decode)
    throw config_error("a search for texts needs the texts of the tokens, or a decoder");
}

}  // namespace detail

MILLRACE_INLINE text_search::text_search(std::vector<std::string> queries, text_rules rules) {
  detail::expect_rules(rules);
  if (queries.empty()) throw config_error("a search needs at least one query");
  std::size_t longest = 0;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    if (queries[q].empty())
      throw config_error("query " + std::to_string(q) + " is an empty text, which is everywhere");
    longest = std::max(longest, queries[q].size());
  }
  detail::text_matcher matcher(queries);
  own_.reset(
      new detail::text_queries{std::move(queries), std::move(rules), std::move(matcher), longest});
}
MILLRACE_INLINE text_search::~text_search() = default;

MILLRACE_INLINE search_result text_search::in(const indexed_dataset& data,
                                              const search_options& options) const {
  const detail::searched_dataset searched(data);
  detail::text_queries& own = *own_;
  const std::size_t queries = own.queries.size();
  return detail::with_integers(data.stream(), [&]<class T>(std::span<const T> tokens) {
    if (!own.rules.table) {
      const auto find = [&](std::string_view text, auto&& found) {
        own.matcher.find(text, [&](std::int64_t query, std::size_t begin) {
          found(query, begin, begin + own.queries[static_cast<std::size_t>(query)].size());
        });
      };
      auto tally = detail::search_blocks(searched, options, queries, [&] {
        return detail::document_searcher<T, decltype(find)>(searched, tokens, own.rules, find);
      });
      return detail::completed(std::move(tally), searched, tokens, own.rules, options);
    }
    // In a small dataset, a filter does not pay, and says little about the ids of others.
    const bool is_small = std::ssize(tokens) < options.block_tokens;
    const detail::token_filter all(queries);
    if (!is_small) {
      std::call_once(own.once, [&] {
        own.filter.emplace(*own.rules.table, own.queries, detail::token_sample(data.stream()));
      });
    }
    const detail::token_filter& filter = is_small ? all : *own.filter;
    auto tally = detail::search_blocks(searched, options, queries, [&] {
      return detail::window_searcher<T>(searched, tokens, own, filter);
    });
    return detail::completed(std::move(tally), searched, tokens, own.rules, options);
  });
}

MILLRACE_INLINE search_result search_pattern(const indexed_dataset& data,
                                             const std::function<find_match()>& make_finder,
                                             const text_rules& rules,
                                             const search_options& options) {
  detail::expect_rules(rules);
  const detail::searched_dataset searched(data);
  return detail::with_integers(data.stream(), [&]<class T>(std::span<const T> tokens) {
    auto tally = detail::search_blocks(searched, options, 1, [&] {
      auto find = [next = make_finder()](std::string_view text, auto&& found) {
        bool not_empty = false;
        for (std::size_t from = 0; const auto match = next(text, from, not_empty);) {
          found(std::int64_t{0}, match->first, match->second);
          from = match->second;
          not_empty = match->first == match->second;
        }
      };
      return detail::document_searcher<T, decltype(find)>(searched, tokens, rules, std::move(find));
    });
    return detail::completed(std::move(tally), searched, tokens, rules, options);
  });
}

}  // namespace millrace::dataset
