// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes with tokenizer.json files, for the scripts of property/:
//
//   hugging_face_lines
//
// in:  for each tokenizer, a line "FILE_OR_FOLDER\tSPECIALS\tIN_TEXT\tTEXTS\n":
//        FILE_OR_FOLDER  tokenizer.json, its folder, or a vocab.txt of BERT. The name
//                        *.uncased.txt selects lower case.
//        SPECIALS        yes or no: whether to add special tokens
//        IN_TEXT         allow, text or error: how to treat special tokens in texts
//        TEXTS           number of texts
//      Then for each text, its size in bytes as a little-endian uint32, and the text (UTF-8).
// out: for each tokenizer, a line "ok VOCAB_SIZE EOD\n" (EOD is -1 if there is no such token) or
//      "refused MESSAGE\n". After "ok", for each text: the number of its ids as uint32, the ids,
//      the size of the decoded text as uint32, and the decoded text. If a text cannot be encoded,
//      the program writes only 2^32 - 1 as the number and 0 as the size.
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "hugging_face/hugging_face_tokenizer.hpp"

namespace {

namespace tk = millrace::tokenizer;

bool read(std::uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), sizeof value));
}
void write(std::uint32_t value) {
  std::cout.write(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string next_text() {
  std::uint32_t size = 0;
  if (!read(size)) return {};
  std::string text(size, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(size));
  return text;
}

void answer(const tk::tokenizer& tokenizer, tk::encoder& encoder, const std::string& text) {
  tk::id_buffer ids;
  if (encoder.encode(text, ids)) {
    write(0xFFFFFFFF);
    write(0);
    return;
  }
  write(static_cast<std::uint32_t>(ids.size()));
  std::cout.write(reinterpret_cast<const char*>(ids.ids().data()),
                  static_cast<std::streamsize>(ids.ids().size_bytes()));
  const std::vector<std::int64_t> wide(ids.ids().begin(), ids.ids().end());
  const std::string decoded = tokenizer.decode(wide);
  write(static_cast<std::uint32_t>(decoded.size()));
  std::cout << decoded;
}

void serve(const std::string& line) {
  std::istringstream fields(line);
  std::string path, specials, in_text, count;
  std::getline(fields, path, '\t');
  std::getline(fields, specials, '\t');
  std::getline(fields, in_text, '\t');
  std::getline(fields, count, '\t');
  tk::detail::hugging_face_options options;
  options.include_special_tokens = specials == "yes";
  options.in_text = in_text == "text"    ? tk::special_tokens_in_text::encode_as_text
                    : in_text == "error" ? tk::special_tokens_in_text::error
                                         : tk::special_tokens_in_text::allow;
  std::unique_ptr<tk::tokenizer> tokenizer;
  try {
    tokenizer = path.ends_with(".txt") ? tk::detail::make_bert_word_piece_tokenizer(
                                             path, path.ends_with(".uncased.txt"), options)
                                       : tk::detail::make_hugging_face_tokenizer(path, options);
  } catch (const std::exception& e) {
    std::cout << "refused " << e.what() << '\n';
  }
  std::unique_ptr<tk::encoder> encoder;
  if (tokenizer) {
    encoder = tokenizer->make_encoder();
    std::cout << "ok " << tokenizer->vocab_size() << ' ' << tokenizer->eod().value_or(-1) << '\n';
  }
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
