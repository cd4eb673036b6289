// SPDX-License-Identifier: Apache-2.0
// Prints the first window of a dataset, and compares blends with blends of another program.
//
// usage: consumer PREFIX [BLENDS]
//
// The file BLENDS has three lines for each blend:
//   weights W ... | sizes N ...     normalized weights, or number of samples of each dataset
//   the dataset of each sample
//   the index of each sample in its dataset
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "every_header.hpp"

std::int64_t vocabulary_seen_by_the_second_unit();

namespace {

template <class T>
std::vector<T> numbers(std::istream& line) {
  std::vector<T> all;
  for (T number; line >> number;) all.push_back(number);
  return all;
}

int compare_blends(const char* path) {
  std::ifstream file(path);
  int blends = 0;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    std::string datasets;
    std::string samples;
    if (!std::getline(file, datasets) || !std::getline(file, samples)) break;
    std::istringstream dataset_line(datasets);
    std::istringstream sample_line(samples);
    const auto expected_datasets = numbers<std::int16_t>(dataset_line);
    const auto expected_samples = numbers<std::int64_t>(sample_line);
    std::vector<std::int16_t> dataset(expected_datasets.size());
    std::vector<std::int64_t> sample(expected_samples.size());
    if (kind == "weights") {
      millrace::dataset::fill_greedy_blend(numbers<double>(line), {dataset, sample});
    } else {
      millrace::dataset::fill_exhaustive_blend(numbers<std::int64_t>(line), {dataset, sample});
    }
    if (dataset != expected_datasets || sample != expected_samples) {
      throw std::runtime_error("another blend than expected: " + text);
    }
    ++blends;
  }
  return blends;
}

// Passes bad arguments to the library, and catches the exceptions by their types.
void catch_by_type(const millrace::dataset::indexed_dataset& data) {
  try {
    const millrace::loader::batch_loader loader(data, {.batch_size = -1, .seq_len = 8});
  } catch (const millrace::config_error&) {
    std::cout << "caught: config_error\n";
  }
  try {
    const millrace::dataset::indexed_dataset missing("no_such_dataset");
  } catch (const millrace::io_error& failure) {
    std::cout << "caught: io_error " << failure.code() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: consumer PREFIX [BLENDS]\n";
    return 2;
  }
  const millrace::dataset::indexed_dataset data(argv[1]);
  millrace::loader::batch_loader loader(data, {.batch_size = 1, .seq_len = 8});
  const auto batch = loader.next();
  if (!batch) return 1;
  std::cout << "first window:";
  for (const std::int64_t token : batch->tokens()) std::cout << ' ' << token;
  std::cout << "\nvocabulary: " << vocabulary_seen_by_the_second_unit() << '\n';
  catch_by_type(data);
  if (argc == 3) std::cout << "blends: " << compare_blends(argv[2]) << '\n';
} catch (const std::exception& failure) {
  std::cerr << "consumer: " << failure.what() << '\n';
  return 1;
}
