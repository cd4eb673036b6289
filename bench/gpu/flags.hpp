// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::bench {

/// The command line of a program: first its arguments, if any, then flags with values.
class flags {
 public:
  explicit flags(std::string usage) : usage_(std::move(usage)) {}

  void argument(std::string* value) { arguments_.push_back(value); }
  void add(std::string_view name, std::string* value) { flags_.push_back({name, value}); }
  void add(std::string_view name, std::int64_t* value, std::int64_t least, std::int64_t most) {
    flags_.push_back(
        {name, nullptr, value, nullptr, static_cast<double>(least), static_cast<double>(most)});
  }
  void add(std::string_view name, double* value, double least, double most) {
    flags_.push_back({name, nullptr, nullptr, value, least, most});
  }

  /// Parses the command line. If it is wrong, prints the reason and returns false.
  bool parse(int argc, char** argv) const {
    int at = 1;
    for (std::string* value : arguments_) {
      if (at == argc || argv[at][0] == '-') return refuse("an argument is missing");
      *value = argv[at++];
    }
    for (; at < argc; at += 2) {
      const std::string name = argv[at];
      const flag* found = find(name);
      if (found == nullptr) return refuse("there is no flag " + name);
      if (at + 1 == argc) return refuse(name + " needs a value");
      if (!set(*found, argv[at + 1])) return false;
    }
    return true;
  }

 private:
  struct flag {
    std::string_view name;
    std::string* text = nullptr;
    std::int64_t* integer = nullptr;
    double* number = nullptr;
    double least = 0;
    double most = 0;
  };

  const flag* find(std::string_view name) const {
    for (const flag& each : flags_) {
      if (each.name == name) return &each;
    }
    return nullptr;
  }

  bool set(const flag& each, const char* value) const {
    if (each.text != nullptr) {
      *each.text = value;
      return true;
    }
    char* end = nullptr;
    const double number = each.number != nullptr
                              ? std::strtod(value, &end)
                              : static_cast<double>(std::strtoll(value, &end, 10));
    if (end == value || *end != '\0' || !(number >= each.least && number <= each.most)) {
      std::cerr << each.name << " is '" << value << "', expected " << each.least << " to "
                << each.most << '\n';
      return false;
    }
    if (each.number != nullptr) *each.number = number;
    if (each.integer != nullptr) *each.integer = static_cast<std::int64_t>(number);
    return true;
  }

  bool refuse(const std::string& why) const {
    std::cerr << why << "\nusage: " << usage_ << '\n';
    return false;
  }

  std::string usage_;
  std::vector<std::string*> arguments_;
  std::vector<flag> flags_;
};

}  // namespace millrace::bench
