// SPDX-License-Identifier: Apache-2.0
// Renders chat templates for tests/property/chat_templates_against_transformers.py.
//
// Each line of the standard input is {"template": TEXT, "variables": OBJECT} or {"path": FILE,
// ...}. Each line of the output is {"text": TEXT, "spans": [[BEGIN, END], ...]} or {"error": TEXT,
// "parse": BOOL}. With --time N, renders each line N times and prints the mean time in ns instead.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include <millrace/chat/chat_template.hpp>

namespace {

using millrace::chat::chat_template;

void append_quoted(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[static_cast<unsigned char>(c) & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc == 3 && std::string(argv[1]) == "--time" ? std::atoi(argv[2]) : 0;
  std::map<std::string, chat_template, std::less<>> parsed;
  std::string line;
  millrace::chat::value_pool pool;
  millrace::chat::rendered made;
  millrace::chat::render_limits limits;
  limits.steps = 20'000'000;
  while (std::getline(std::cin, line)) {
    pool.clear();
    std::string out;
    bool parsing = true;
    try {
      const auto request = millrace::chat::parse_json(line, pool);
      const auto* path = request.find("path");
      const std::string key(path != nullptr ? path->text() : request.find("template")->text());
      auto found = parsed.find(key);
      if (found == parsed.end()) {
        std::string source = key;
        if (path != nullptr) {
          std::ifstream file(key, std::ios::binary);
          source.assign(std::istreambuf_iterator<char>(file), {});
        } else {
          parsed.clear();
        }
        found = parsed.emplace(key, chat_template::parse(source, "template")).first;
      }
      parsing = false;
      const auto variables = *request.find("variables");
      found->second.render(variables, made, limits);
      if (repeats > 0) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < repeats; ++i) found->second.render(variables, made, limits);
        const std::chrono::duration<double, std::nano> time =
            std::chrono::steady_clock::now() - begin;
        std::cout << time.count() / repeats << '\n';
        continue;
      }
      out += "{\"text\": ";
      append_quoted(made.text, out);
      out += ", \"spans\": [";
      for (std::size_t i = 0; i < made.generation.size(); ++i) {
        out += (i == 0 ? "[" : ", [") + std::to_string(made.generation[i].begin) + ", " +
               std::to_string(made.generation[i].end) + "]";
      }
      out += "]}";
    } catch (const millrace::error& e) {
      out = "{\"error\": ";
      append_quoted(e.what(), out);
      out += parsing ? ", \"parse\": true}" : ", \"parse\": false}";
    }
    std::cout << out << '\n';
  }
}
