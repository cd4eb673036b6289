// SPDX-License-Identifier: Apache-2.0
#include "regex/pattern_tree.hpp"

#include <algorithm>

namespace millrace::tokenizer::detail {
namespace {

using node_kind = pattern_node::kind;

fixed_length length_of_alternation(const pattern_node& node) {
  fixed_length common = length_of(node.children.front());
  for (const pattern_node& child : node.children) {
    const fixed_length length = length_of(child);
    common.is_fixed = common.is_fixed && length.is_fixed && length.count == common.count;
  }
  return common;
}

}  // namespace

fixed_length length_of(const pattern_node& node) {
  switch (node.what) {
    case node_kind::characters:
      return {true, 1};
    case node_kind::sequence: {
      fixed_length sum{true, 0};
      for (const pattern_node& child : node.children) {
        const fixed_length length = length_of(child);
        sum = {sum.is_fixed && length.is_fixed, sum.count + length.count};
      }
      return sum;
    }
    case node_kind::alternation:
      return length_of_alternation(node);
    case node_kind::repeat: {
      const fixed_length length = length_of(node.children.front());
      return {length.is_fixed && node.min == node.max, length.count * node.min};
    }
    case node_kind::atomic:
      return length_of(node.children.front());
    default:
      return {true, 0};
  }
}

bool may_be_empty(const pattern_node& node) {
  switch (node.what) {
    case node_kind::characters:
      return false;
    case node_kind::sequence:
      return std::ranges::all_of(node.children, may_be_empty);
    case node_kind::alternation:
      return std::ranges::any_of(node.children, may_be_empty);
    case node_kind::repeat:
      return node.min == 0 || may_be_empty(node.children.front());
    case node_kind::atomic:
      return may_be_empty(node.children.front());
    default:
      return true;
  }
}

}  // namespace millrace::tokenizer::detail
