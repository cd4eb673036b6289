// SPDX-License-Identifier: Apache-2.0
//
// Searches a dataset on one thread through a new map of its files, and prints one line of JSON. The
// script bench/peers/search runs this program.
//
//   bench_search PREFIX (--ids 'ID ...' | --text TEXT | --texts FILE) [TOKENIZER FLAGS]
//
// The last form writes the texts of all ids in hexadecimal to FILE, as a JSON list.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/parse_flags.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/search.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

using namespace millrace;

namespace {

namespace po = boost::program_options;

void write_texts(const formats::token_texts& texts, const std::string& path) {
  std::ofstream out(path);
  out << '[';
  for (std::size_t i = 0; i < texts.inner.size(); ++i) {
    out << (i == 0 ? "\"" : ",\"");
    for (const char c : texts.text(texts.inner[i])) {
      out << fmt::format("{:02x}", static_cast<unsigned char>(c));
    }
    out << '"';
  }
  out << "]\n";
}

std::vector<std::int64_t> ids_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 0; words >> id;) ids.push_back(id);
  return ids;
}

int run(const std::vector<std::string>& arguments) {
  po::options_description flags;
  auto add = flags.add_options();
  for (const char* flag : {"prefix", "ids", "text", "texts"}) add(flag, po::value<std::string>());
  flags.add(tokenizer::tokenizer_flags());
  po::positional_options_description positions;
  positions.add("prefix", 1);
  const auto given = command::parse_flags(arguments, flags, positions);
  const auto value = [&](const char* flag) {
    return given[flag].empty() ? std::string() : given[flag].as<std::string>();
  };
  std::shared_ptr<const formats::token_texts> texts;
  if (const auto options = tokenizer::tokenizer_options_of(given)) {
    texts = std::make_shared<const formats::token_texts>(
        tokenizer::open_tokenizer(*options)->token_texts().value());
  }
  const auto begin = std::chrono::steady_clock::now();
  const dataset::indexed_dataset data(value("prefix"));
  if (const std::string file = value("texts"); !file.empty()) {
    if (texts) write_texts(*texts, file);
    std::printf("{\"tokens\": %lld, \"dtype\": \"%s\", \"bin_bytes\": %llu}\n",
                static_cast<long long>(data.token_count()),
                std::string(formats::name(data.type())).c_str(),
                static_cast<unsigned long long>(data.bin_size_bytes()));
    return 0;
  }
  const std::string text = value("text");
  const dataset::search_result found = text.empty()
                                           ? dataset::search_ids(data, {ids_of(value("ids"))})
                                           : dataset::text_search({text}, {texts}).in(data);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"s\": %.9f, \"hits\": %lld}\n", seconds.count(),
              static_cast<long long>(found.hit_count));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run({argv + 1, argv + argc});
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_search: %s\n", e.what());
  return 1;
}
