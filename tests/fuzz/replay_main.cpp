// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target without libFuzzer: replays inputs, then runs mutations of them.
//
// usage: NAME_fuzz [--mutate N] [--seed S] [--first I] PATH...
//
// Each PATH is an input, or a folder of inputs. Mutation I of seed S depends only on I, S and the
// inputs, so `--seed S --first I --mutate 1` repeats a failure. The bytes of a failing input are
// written to ./crash-NAME_fuzz.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Only builds with a sanitizer define this function. A sanitizer ends the program without a signal,
// so only a callback can report the failing input.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*)());

namespace {

using input = std::vector<std::uint8_t>;

// The current input. The crash handler finds it here, because a crash handler must not allocate
// memory.
struct {
  std::string label;
  std::string file;
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
} current;

void report() {
  const int fd = ::open(current.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd >= 0 && current.size != 0) (void)!::write(fd, current.data, current.size);
  for (const std::string* text : {&current.label, &current.file}) {
    (void)!::write(STDERR_FILENO, "\nfuzz: ", 7);
    (void)!::write(STDERR_FILENO, text->data(), text->size());
  }
  (void)!::write(STDERR_FILENO, "\n", 1);
}

void on_signal(int number) {
  report();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void run(const input& bytes, std::string label) {
  // A new allocation of exactly this size makes ASan report reads beyond the input.
  const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  current.label = std::move(label);
  current.data = exact.get();
  current.size = bytes.size();
  LLVMFuzzerTestOneInput(current.data, current.size);
}

/// Makes mutations: random inputs with one to eight small changes each.
class mutator {
 public:
  mutator(const std::vector<input>& corpus, std::uint64_t seed)
      : corpus_(corpus), random_(seed * 0x9E3779B97F4A7C15U + 1) {}

  input make() {
    input bytes = any_input();
    const std::size_t most = std::max<std::size_t>(2 * bytes.size(), 1024);
    for (std::uint64_t n = 1 + below(8); n != 0; --n) change(bytes);
    if (bytes.size() > most) bytes.resize(most);
    return bytes;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  const input& any_input() { return corpus_[below(corpus_.size())]; }

  // Returns the beginning and the end of a random range of an input. Short ranges are more likely.
  std::pair<std::size_t, std::size_t> range_of(const input& bytes) {
    const std::size_t begin = below(bytes.size() + 1);
    const std::size_t longest =
        std::min<std::size_t>(bytes.size() - begin, std::size_t{1} << below(9));
    return {begin, begin + below(longest + 1)};
  }

  void overwrite(input& bytes, std::uint64_t value, std::size_t width) {
    if (bytes.size() < width) return;
    std::memcpy(bytes.data() + below(bytes.size() - width + 1), &value, width);
  }

  void change(input& bytes) {
    const auto at = [&](std::size_t i) { return bytes.begin() + static_cast<std::ptrdiff_t>(i); };
    const std::size_t width = std::size_t{1} << below(4);
    switch (below(8)) {
      case 0:  // one bit
        if (!bytes.empty()) bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:  // a number near a power of two, so that sums and products overflow
        overwrite(bytes, (std::uint64_t{1} << below(64)) + below(9) - 4, width);
        break;
      case 2:
        overwrite(bytes, below(16) - below(16), width);
        break;
      case 3:
        overwrite(bytes, random_(), width);
        break;
      case 4:
        bytes.resize(below(bytes.size() + 1));
        break;
      case 5: {  // remove a range
        const auto [begin, end] = range_of(bytes);
        bytes.erase(at(begin), at(end));
        break;
      }
      default: {  // insert a range of any input, or overwrite bytes with it
        const input& other = any_input();
        const auto [begin, end] = range_of(other);
        const input part(other.begin() + static_cast<std::ptrdiff_t>(begin),
                         other.begin() + static_cast<std::ptrdiff_t>(end));
        const std::size_t to = below(bytes.size() + 1);
        if (below(2) == 0) bytes.erase(at(to), at(std::min(to + part.size(), bytes.size())));
        bytes.insert(at(to), part.begin(), part.end());
      }
    }
  }

  const std::vector<input>& corpus_;
  std::mt19937_64 random_;
};

input read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mutations = 0;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    std::uint64_t* number = argument == "--mutate"  ? &mutations
                            : argument == "--seed"  ? &seed
                            : argument == "--first" ? &first
                                                    : nullptr;
    if (number != nullptr && i + 1 < argc) {
      *number = std::strtoull(argv[++i], nullptr, 0);
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
        if (entry.is_regular_file()) paths.push_back(entry.path());
      }
    } else {
      paths.emplace_back(argument);
    }
  }
  std::sort(paths.begin(), paths.end());  // folders list files in arbitrary order
  if (paths.empty()) {
    std::fprintf(stderr, "usage: %s [--mutate N] [--seed S] [--first I] PATH...\n", argv[0]);
    return 2;
  }

  current.file = "crash-" + std::filesystem::path(argv[0]).filename().string();
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(number, on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(report);

  std::vector<input> corpus;
  for (const auto& path : paths) {
    corpus.push_back(read(path));
    run(corpus.back(), path.string());
  }
  for (std::uint64_t i = first; i < first + mutations; ++i) {
    // Seeds and mutation indices are small, so each pair of them gives a distinct 64-bit number.
    run(mutator(corpus, (seed << 40) + i).make(),
        "--seed " + std::to_string(seed) + " --first " + std::to_string(i) + " --mutate 1");
  }
  std::printf("%zu inputs, %llu mutations of seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(mutations), static_cast<unsigned long long>(seed));
  return 0;
}
