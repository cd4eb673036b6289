// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::dataset::detail {

/// Finds all occurrences of some texts, overlapping ones too. Immutable; threads may share it.
///
/// One text is found by memmem; several by an automaton (Aho-Corasick) in one pass. Its states are
/// numbered in the order of a breadth-first search, so that the children of a state are neighbors,
/// and a state takes about 20 bytes.
class text_matcher {
 public:
  /// @pre there is at least one text, and none is empty
  explicit text_matcher(const std::vector<std::string>& texts);

  /// Calls found(query, begin) for each occurrence, in the order of their ends.
  template <class Found>
  void find(std::string_view text, Found&& found) const {
    if (use_memmem_) {
      find_one(text, found);
    } else {
      find_many(text, found);
    }
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  void build(const std::vector<std::string>& texts);

  template <class Found>
  void find_one(std::string_view text, Found&& found) const {
    std::size_t from = 0;
    for (;;) {
      const auto* const at = static_cast<const char*>(
          ::memmem(text.data() + from, text.size() - from, one_.data(), one_.size()));
      if (at == nullptr) return;
      const auto begin = static_cast<std::size_t>(at - text.data());
      found(0, begin);
      from = begin + period_;
    }
  }

  template <class Found>
  void find_many(std::string_view text, Found&& found) const {
    const auto root_child = [&](std::size_t at) {
      return root_[static_cast<unsigned char>(text[at])];
    };
    std::uint32_t state = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (state == 0) {
        while (at < text.size() && root_child(at) == 0) ++at;
        if (at == text.size()) return;
        state = root_child(at);
      } else {
        std::uint32_t next = none;
        while (state != 0 && (next = child(state, static_cast<unsigned char>(text[at]))) == none) {
          state = fail_[state];
        }
        state = state == 0 ? root_child(at) : next;
      }
      for (std::uint32_t s = has_hit(state) ? state : hit_link_[state]; s != none;
           s = hit_link_[s]) {
        for (std::uint32_t q = query_[s]; q != none; q = next_query_[q]) {
          found(q, at + 1 - sizes_[q]);
        }
      }
    }
  }

  bool has_hit(std::uint32_t state) const noexcept { return query_[state] != none; }

  std::uint32_t child(std::uint32_t state, unsigned char byte) const noexcept {
    for (std::uint32_t c = first_child_[state]; c < first_child_[state + 1]; ++c) {
      if (label_[c] == byte) return c;
    }
    return none;
  }

  bool use_memmem_ = false;
  std::string one_;
  std::size_t period_ = 1;  ///< the least distance of two occurrences of `one_`

  std::array<std::uint32_t, 256> root_{};   // children of the root; 0: none
  std::vector<std::uint32_t> first_child_;  // children of s: [first_child_[s], first_child_[s + 1])
  std::vector<unsigned char> label_;        // the last byte of the state's text
  std::vector<std::uint32_t> fail_;         // the state of the longest proper suffix
  std::vector<std::uint32_t> query_;        // the first query that is the state's text
  std::vector<std::uint32_t> hit_link_;     // the longest proper suffix that is a query
  std::vector<std::uint32_t> next_query_;   // by query: the next one with the same text
  std::vector<std::size_t> sizes_;          // by query
};

}  // namespace millrace::dataset::detail
