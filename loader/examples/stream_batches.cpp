// SPDX-License-Identifier: Apache-2.0
//
// Streams some micro-batches of a dataset. Prints the shape and a line of text of each micro-batch.
//
//   example_stream_batches PREFIX [--batches N]
//
// PREFIX is the path, without `.bin` or `.idx`, of a dataset that `preprocess_data` wrote with
// ByteLevelTokenizer.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

namespace {

// Returns the first tokens of a row as one line of text.
std::string first_line(std::span<const std::int64_t> row) {
  const auto tokenizer = millrace::tokenizer::make_tokenizer({});
  std::string text = tokenizer->decode(row.first(std::min<std::size_t>(row.size(), 60)));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

void stream(const std::string& prefix, std::int64_t batches) {
  const millrace::dataset::indexed_dataset data(prefix);
  const millrace::loader::loader_options options{.batch_size = 4, .seq_len = 256};
  millrace::loader::batch_loader loader(data, options);

  std::cout << prefix << ": " << data.token_count() << " tokens, " << loader.micro_batches()
            << " micro-batches of [" << options.batch_size << ", " << options.seq_len << "]\n";
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto batch = loader.next();
    if (!batch) break;
    std::cout << "step " << batch->step() << ": samples " << batch->first_sample() << " to "
              << batch->first_sample() + options.batch_size - 1 << ", tokens and labels ["
              << options.batch_size << ", " << options.seq_len << "] int64\n"
              << "  \"" << first_line(batch->tokens()) << "\"\n";
  }
  std::cout << "consumed_samples " << loader.consumed_samples() << '\n';
}

// Parses a whole number, 0 or more. Returns nothing if `text` is not such a number.
std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end || count < 0) return std::nullopt;
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<std::int64_t> batches;
  if (argc == 2) batches = 3;
  if (argc == 4 && std::string_view(argv[2]) == "--batches") batches = parse_count(argv[3]);
  if (!batches) {
    std::cerr << "usage: example_stream_batches PREFIX [--batches N]\n";
    return 2;
  }
  try {
    stream(argv[1], *batches);
  } catch (const std::exception& e) {
    std::cerr << "example_stream_batches: " << e.what() << '\n';
    return 1;
  }
}
