// SPDX-License-Identifier: Apache-2.0
#include "record/text_key.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>

namespace millrace::preprocess {

text_key plain_key(std::string name) {
  text_key key;
  key.path.push_back(name);
  key.name = std::move(name);
  return key;
}

std::vector<text_key> plain_keys(std::vector<std::string> names) {
  std::vector<text_key> keys;
  keys.reserve(names.size());
  for (std::string& name : names) keys.push_back(plain_key(std::move(name)));
  return keys;
}

text_key key_of_path(std::string dotted) {
  text_key key;
  for (std::size_t begin = 0; begin <= dotted.size();) {
    const std::size_t end = std::min(dotted.find('.', begin), dotted.size());
    if (end == begin) {
      throw config_error(
          fmt::format("--text-key '{}': expected keys separated by dots, such as text or "
                      "meta.text; --json-keys takes a key literally",
                      dotted));
    }
    key.path.push_back(dotted.substr(begin, end - begin));
    begin = end + 1;
  }
  key.name = std::move(dotted);
  return key;
}

}  // namespace millrace::preprocess
