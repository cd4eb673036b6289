// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/data_flags.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// A weight or a prefix of a blend: an item of a JSON array, or a word of a string.
struct blend_word {
  std::string text;
  bool is_text = true;  ///< false if the item is a JSON number
};

/// Returns the words of a blend; nullopt if the value is neither a string nor an array of strings
/// and numbers.
MILLRACE_INLINE std::optional<std::vector<blend_word>> blend_words(const python_json& value) {
  std::vector<blend_word> words;
  if (const auto text = value.text()) {
    for (std::string& each : python_split(*text)) words.push_back({std::move(each)});
    return words;
  }
  if (!value.is_array()) return std::nullopt;
  for (const python_json& item : value.items()) {
    if (auto text = item.text()) {
      words.push_back({std::move(*text)});
    } else if (std::string number = item.dump(); read_python_float(number)) {
      words.push_back({std::move(number), false});
    } else {
      return std::nullopt;
    }
  }
  return words;
}

}  // namespace detail

MILLRACE_INLINE part_blends read_part_blends(std::string_view json, std::string_view option) {
  const python_json values = read_python_json(json);
  const std::string file(option);
  if (!values.is_object()) {
    throw config_error(file + ": expected a JSON object with train, valid and test");
  }
  part_blends blends;
  for (const split_part part : split_parts) {
    const python_json* value = values.find(name(part));
    const std::string key = file + ": \"" + std::string(name(part)) + '"';
    if (value == nullptr) {
      throw config_error(key + " is missing, expected a blend, or null for none");
    }
    if (value->is_null()) continue;
    const auto found = detail::blend_words(*value);
    if (!found) {
      throw config_error(key + " is not null, a string, or an array of strings and numbers");
    }
    std::vector<std::string> words;
    for (const detail::blend_word& word : *found) words.push_back(word.text);
    blend_list list = parse_blend_list(words, key);
    const std::size_t step = list.weighted() ? 2 : 1;
    for (std::size_t i = step - 1; i < words.size(); i += step) {
      if ((*found)[i].is_text) continue;
      throw config_error(key + ": " + words[i] + " (word " + std::to_string(i + 1) +
                         ") is a number, expected a prefix in quotes");
    }
    blends[static_cast<std::size_t>(part)] = std::move(list);
  }
  return blends;
}

}  // namespace millrace::dataset
