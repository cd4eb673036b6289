// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/ranked_tokens.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "text/base64.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Adds the token of one line. Returns a description of what is wrong with the line, or an empty
// string.
std::string add_line(std::string_view line, std::string& bytes, ranked_tokens& tokens) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    return "expected a token in base64, a space and its rank, found " + formats::in_quotes(line);
  }
  const std::string_view token = line.substr(0, space);
  const std::string_view digits = line.substr(space + 1);
  if (!decode_base64(token, bytes)) return "expected base64, found " + formats::in_quotes(token);
  std::int64_t rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) {
    return "expected a rank, found " + formats::in_quotes(digits);
  }
  if (error != std::errc() || rank < 0 || rank > ranked_tokens::max_id) {
    return "rank " + formats::in_quotes(digits) + " is outside 0.." +
           std::to_string(ranked_tokens::max_id);
  }
  if (tokens.tokens.has(rank)) {
    return "rank " + std::to_string(rank) + " occurs twice, for " +
           formats::in_quotes(tokens.tokens.bytes(rank)) + " and " + formats::in_quotes(bytes);
  }
  return tokens.add(static_cast<std::int32_t>(rank), bytes);
}

}  // namespace

void parse_rank_file(std::string_view text, ranked_tokens& tokens) {
  std::string bytes;
  tokens.tokens.reserve(text.size());
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t newline = text.find('\n', begin);
    const bool ended = newline != std::string_view::npos;
    const std::size_t end = ended ? newline : text.size();
    std::string_view line = text.substr(begin, end - begin);
    if (ended && line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) {
      if (const std::string fault = add_line(line, bytes, tokens); !fault.empty()) {
        throw format_error(begin, "line " + std::to_string(number) + ": " + fault);
      }
    }
    begin = end + 1;
  }
  if (tokens.tokens.count() == 0) {
    throw format_error(0, "the file has no line, expected tokens in base64 with their ranks");
  }
}

namespace {

constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();

/// Maps pairs of tokens to the token that they merge to. Holds at most the given number of pairs.
///
/// Most pairs of adjacent tokens do not merge. A bitmap, small enough for the CPU cache, shows this
/// for nearly all of them.
class merged_pairs {
 public:
  explicit merged_pairs(std::size_t pairs)
      : slots_(std::bit_ceil(2 * pairs + 2)), bitmap_(slots_.size() / 8 + 1) {}

  std::int32_t find(std::int32_t left, std::int32_t right) const noexcept {
    const std::uint64_t pair = key(left, right);
    const std::size_t bit = bit_of(pair);
    if ((bitmap_[bit / 64] >> bit % 64 & 1) == 0) return none;
    return slots_[place_of(pair)].result;
  }
  void add(const merge_rule& rule) noexcept {
    const std::uint64_t pair = key(rule.left, rule.right);
    const std::size_t bit = bit_of(pair);
    bitmap_[bit / 64] |= std::uint64_t{1} << bit % 64;
    slots_[place_of(pair)] = {pair, rule.result};
  }

 private:
  struct slot {
    std::uint64_t pair = ~std::uint64_t{0};
    std::int32_t result = none;
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  static std::uint64_t hash_of(std::uint64_t pair) noexcept {
    return (pair ^ pair >> 32) * 0x9E3779B97F4A7C15U;
  }
  // The bitmap has eight bits per slot.
  std::size_t bit_of(std::uint64_t pair) const noexcept {
    return hash_of(pair) >> 24 & (8 * slots_.size() - 1);
  }
  std::size_t place_of(std::uint64_t pair) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash_of(pair) >> 32 & mask;
    while (slots_[at].result != none && slots_[at].pair != pair) at = (at + 1) & mask;
    return at;
  }

  std::vector<slot> slots_;
  std::vector<std::uint64_t> bitmap_;
};

struct token_piece {
  std::size_t begin;
  std::int32_t id;
};

class deriver {
 public:
  deriver(const ranked_tokens& tokens, const std::array<std::int32_t, 256>& byte_ids)
      : tokens_(&tokens), byte_ids_(&byte_ids), pairs_(tokens.tokens.count()) {}

  std::vector<merge_rule> derive() {
    std::vector<merge_rule> rules;
    for (std::int64_t id = 0; id < tokens_->tokens.end_id(); ++id) {
      if (!tokens_->tokens.has(id)) continue;
      const std::string_view bytes = tokens_->tokens.bytes(id);
      if (bytes.size() < 2) continue;
      // Nearly always, the merges of lower rank, which are already known, leave two pieces. If they
      // leave more, other merges may apply: two pieces merge whenever their joined bytes are a
      // token.
      merge(bytes, [&](std::size_t i) { return pairs_.find(pieces_[i].id, pieces_[i + 1].id); });
      if (pieces_.size() > 2) merge(bytes, [&](std::size_t i) { return token_at(bytes, i); });
      if (pieces_.size() > 2) continue;
      rules.push_back({pieces_[0].id, pieces_[1].id, static_cast<std::int32_t>(id)});
      pairs_.add(rules.back());
    }
    return rules;
  }

 private:
  std::int32_t token_at(std::string_view bytes, std::size_t i) const noexcept {
    const std::size_t end = i + 2 < pieces_.size() ? pieces_[i + 2].begin : bytes.size();
    return tokens_->find(bytes.substr(pieces_[i].begin, end - pieces_[i].begin)).value_or(none);
  }

  // Merges `bytes` until no merge applies or two pieces are left. The result is in pieces_.
  // result_of(i) is the token that pieces i and i + 1 merge to.
  template <class ResultOf>
  void merge(std::string_view bytes, ResultOf result_of) {
    pieces_.clear();
    results_.clear();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      pieces_.push_back({i, (*byte_ids_)[static_cast<unsigned char>(bytes[i])]});
    }
    for (std::size_t i = 0; i + 1 < pieces_.size(); ++i) results_.push_back(result_of(i));
    while (pieces_.size() > 2) {
      const auto lowest = std::ranges::min_element(results_);  // the leftmost minimum
      if (*lowest == none) return;
      const auto at = static_cast<std::size_t>(lowest - results_.begin());
      pieces_[at].id = *lowest;
      pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      results_.erase(lowest);
      if (at > 0) results_[at - 1] = result_of(at - 1);
      if (at < results_.size()) results_[at] = result_of(at);
    }
  }

  const ranked_tokens* tokens_;
  const std::array<std::int32_t, 256>* byte_ids_;
  merged_pairs pairs_;
  std::vector<token_piece> pieces_;    // pieces of one token
  std::vector<std::int32_t> results_;  // entry i: the token that pieces i and i + 1 merge to
};

}  // namespace

std::vector<merge_rule> merges_of_ranked(const ranked_tokens& tokens,
                                         const std::array<std::int32_t, 256>& byte_ids) {
  return deriver(tokens, byte_ids).derive();
}

}  // namespace millrace::tokenizer::detail
