// SPDX-License-Identifier: Apache-2.0
// Gives the ids and the spans of texts, for property/offsets_against_reference.py:
//
//   offset_lines
//
// in:  for each tokenizer, a line "TYPE\tMODEL\tPATTERN\tSPECIALS\tIN_TEXT\tTEXTS\n":
//        TYPE      a tokenizer type of Megatron; MODEL is its file, or for GPT2BPETokenizer and
//        Bert*
//                  its vocabulary; merges.txt is next to it
//        PATTERN   --tiktoken-pattern, or empty
//        SPECIALS  yes or no: whether to add the special tokens of a template
//        IN_TEXT   allow, text or error: how to treat special tokens in texts
//        TEXTS     number of texts
//      Then for each text, its size in bytes as a little-endian uint32, and the text (UTF-8).
// out: for each tokenizer, a line "ok\n" or "refused MESSAGE\n". After "ok", for each text: the
//      number of its ids as uint32, the ids, and the begin and the end of each span as uint32. If
//      there are no spans, 2^32 - 1 and 0, or 1 if encode() gives ids, and then the reason as its
//      size and its text.
//
// Exits with 1 if ids are not those of encode(), or if the spans of parts are not those of the
// whole text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace {

namespace tk = millrace::tokenizer;

bool read(std::uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), sizeof value));
}
void write(std::size_t value) {
  const auto narrow = static_cast<std::uint32_t>(value);
  std::cout.write(reinterpret_cast<const char*>(&narrow), sizeof narrow);
}

std::string next_text() {
  std::uint32_t size = 0;
  if (!read(size)) return {};
  std::string text(size, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(size));
  return text;
}

void expect(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::cerr << what << " in the text " << text << '\n';
  std::exit(1);
}

bool same_ids(const tk::id_buffer& a, const tk::id_buffer& b) {
  return std::ranges::equal(a.ids(), b.ids());
}

// Encodes `text` in parts that end near its middle.
void check_parts(const tk::tokenizer& tokenizer, const std::string& text, const tk::id_buffer& ids,
                 const std::vector<tk::byte_span>& spans) {
  const auto encoder = tokenizer.make_encoder(0);
  tk::id_buffer part_ids;
  std::vector<tk::byte_span> part_spans;
  std::string_view rest = text;
  bool first = true;
  while (true) {
    std::size_t middle = rest.size() / 2;
    while (middle < rest.size() && (static_cast<unsigned char>(rest[middle]) & 0xC0) == 0x80) {
      ++middle;
    }
    const std::size_t cut = tokenizer.last_cut(rest.substr(0, middle));
    const std::size_t before = part_spans.size();
    const tk::text_part part = {rest.substr(0, cut == 0 ? rest.size() : cut), first, cut == 0};
    if (encoder->encode_part_with_offsets(part, part_ids, part_spans)) return;
    const auto shift = static_cast<std::size_t>(rest.data() - text.data());
    for (std::size_t i = before; i < part_spans.size(); ++i) {
      const bool from_template = part_spans[i].end == 0;
      if (!from_template) part_spans[i] = {part_spans[i].begin + shift, part_spans[i].end + shift};
    }
    if (cut == 0) break;
    rest.remove_prefix(cut);
    first = false;
  }
  expect(same_ids(ids, part_ids) && part_spans == spans, "the spans of parts differ", text);
}

void answer(const tk::tokenizer& tokenizer, tk::encoder& encoder, const std::string& text) {
  tk::id_buffer ids;
  tk::id_buffer plain;
  std::vector<tk::byte_span> spans;
  const auto plain_fault = encoder.encode(text, plain);
  if (const auto fault = encoder.encode_with_offsets(text, ids, spans)) {
    expect(ids.size() == 0 && spans.empty(), "a fault leaves ids", text);
    write(0xFFFFFFFF);
    write(plain_fault ? 0 : 1);
    write(fault->what.size());
    std::cout << fault->what;
    return;
  }
  expect(!plain_fault && same_ids(ids, plain), "ids differ from those of encode()", text);
  expect(spans.size() == ids.size(), "the numbers of ids and spans differ", text);
  if (text.size() < 2000) check_parts(tokenizer, text, ids, spans);
  write(ids.size());
  std::cout.write(reinterpret_cast<const char*>(ids.ids().data()),
                  static_cast<std::streamsize>(ids.ids().size_bytes()));
  for (const tk::byte_span& span : spans) {
    write(span.begin);
    write(span.end);
  }
}

void serve(const std::string& line) {
  std::istringstream fields(line);
  std::string type, model, pattern, specials, in_text, count;
  for (std::string* field : {&type, &model, &pattern, &specials, &in_text, &count}) {
    std::getline(fields, *field, '\t');
  }
  tk::tokenizer_options options;
  options.type = type;
  if (type == "GPT2BPETokenizer" || type.starts_with("Bert")) {
    options.vocab_file = model;
  } else if (type == "NullTokenizer") {
    options.vocab_size = 1000;
  } else if (type != "ByteLevelTokenizer") {
    options.model = model;
  }
  if (type == "GPT2BPETokenizer") {
    options.merge_file = options.vocab_file.parent_path() / "merges.txt";
  }
  options.tiktoken_pattern = pattern;
  options.hf_include_special_tokens = specials == "yes";
  options.in_text = in_text == "text"    ? tk::special_tokens_in_text::encode_as_text
                    : in_text == "error" ? tk::special_tokens_in_text::error
                    : in_text == "allow" ? tk::special_tokens_in_text::allow
                                         : tk::special_tokens_in_text::as_reference;
  std::unique_ptr<tk::tokenizer> tokenizer;
  try {
    tokenizer = tk::make_tokenizer(options);
    std::cout << "ok\n";
  } catch (const std::exception& e) {
    std::cout << "refused " << e.what() << '\n';
  }
  const auto encoder = tokenizer ? tokenizer->make_encoder() : nullptr;
  for (int i = 0, texts = std::stoi(count); i < texts; ++i) {
    const std::string text = next_text();
    if (tokenizer) answer(*tokenizer, *encoder, text);
  }
  std::cout.flush();
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) serve(line);
  return std::cout.good() ? 0 : 1;
}
