#include <algorithm>
#include <cmath>
#include <iterator>

#include "oasr/alignment.h"

namespace oasr::alignment {
namespace {

struct Range {
  char32_t first, last;  // closed
};

// The code points for which Python's str.isspace() is true.
constexpr Range kSpaces[] = {{0x09, 0x0D},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                             {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

// What is written without spaces: Hangul (Jamo, syllables, narrow forms), CJK radicals, punctuation and ideographs, kana,
// bopomofo, Tangut and Nushu, and the full-width forms but for letters and digits, which make words as in Latin.
constexpr Range kSpaceless[] = {
    {0x1100, 0x11FF}, {0x2E80, 0x2FFF}, {0x3001, 0x3098}, {0x309B, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA960, 0xA97F},
    {0xAC00, 0xD7FF}, {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF01, 0xFF0F},   {0xFF1A, 0xFF20},   {0xFF3B, 0xFF40},
    {0xFF5B, 0xFF9D}, {0xFFA0, 0xFFDC}, {0xFFE0, 0xFFE6}, {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x20000, 0x3FFFD}};

// Voiced marks of kana and variation selectors, which belong to the character before them.
constexpr Range kMarks[] = {{0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFF9E, 0xFF9F}, {0xE0100, 0xE01EF}};

template <std::size_t N>
bool among(const Range (&ranges)[N], char32_t c) {
  const auto next = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                     [](char32_t value, const Range& range) { return value < range.first; });
  return next != std::begin(ranges) && c <= std::prev(next)->last;
}

std::vector<Word> words_of(const std::vector<char32_t>& text) {
  std::vector<Word> words;
  enum { kGap, kRun, kCharacter } state = kGap;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    const auto before = state;
    if (among(kSpaces, c)) {
      state = kGap;
      continue;
    }
    if (among(kSpaceless, c)) {
      state = kCharacter;
    } else if (before != kCharacter || !among(kMarks, c)) {
      state = kRun;
    }
    const bool goes_on = state == before && !(state == kCharacter && among(kSpaceless, c));
    if (!goes_on) words.push_back({i, i, {}, 0});
    words.back().last = i + 1;
  }
  return words;
}

double posterior(double log_prob) { return log_prob <= 0 ? std::exp(log_prob) : log_prob > 0 ? 1.0 : 0.0; }

// Frames that fit into the stretch; what is left of a last one counts to the one before it.
std::int64_t frames_in(const Clock& clock) {
  const double count = std::floor(clock.duration_s / clock.seconds_per_frame + 1e-6);
  return count < 1 ? 1 : count < 9e15 ? static_cast<std::int64_t>(count) : std::int64_t{9'000'000'000'000'000};
}

void put_in_order(std::vector<Span>& spans, std::int64_t frames) {
  Span last{0, 0};
  for (auto& span : spans) {
    span.start = std::min(std::max(span.start, last.start), frames - 1);
    span.end = std::min(std::max({span.end, last.end, span.start + 1}), frames);
    last = span;
  }
}

Interval seconds(const Span& span, const Clock& clock, std::int64_t frames) {
  const double end = span.end == frames ? clock.duration_s : static_cast<double>(span.end) * clock.seconds_per_frame;
  return {clock.offset_s + static_cast<double>(span.start) * clock.seconds_per_frame, clock.offset_s + end};
}

// Words of tokens that overlap in time end where the next one begins, where that leaves them a time.
void separate(std::vector<Word>& words) {
  for (auto i = words.size(); i-- > 1;) {
    const auto& next = words[i].time;
    auto& time = words[i - 1].time;
    time.end_s = std::min(time.end_s, next.start_s > time.start_s ? next.start_s : next.end_s);
  }
}

}  // namespace

std::vector<Span> spans_of_emissions(const std::vector<std::int64_t>& frames) {
  std::vector<Span> spans(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto since = i == 0 ? frames[0] : frames[i - 1] + 1;
    spans[i] = {std::min(since, frames[i]), frames[i] + 1};
  }
  return spans;
}

Timings time_words(const Transcript& transcript, std::vector<Span> spans, const std::vector<double>& log_probs,
                   const Clock& clock) {
  const auto frames = frames_in(clock);
  put_in_order(spans, frames);
  Timings out{words_of(transcript.text), {}, 0};
  out.tokens.reserve(spans.size());
  double sum = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    out.tokens.push_back(seconds(spans[i], clock, frames));
    sum += posterior(log_probs[i]);
  }
  if (!spans.empty()) out.confidence = sum / static_cast<double>(spans.size());
  // Token i touches text[begin(i), end(i)); one without a piece touches the character that follows it.
  const auto& ends = transcript.piece_ends;
  const auto begin = [&ends](std::size_t i) { return i == 0 ? 0 : ends[i - 1]; };
  const auto end = [&](std::size_t i) { return std::max(ends[i], begin(i) + 1); };
  std::size_t first = 0;
  for (auto& word : out.words) {
    while (end(first) <= word.first) ++first;
    double total = 0;
    auto token = first;
    for (; token < ends.size() && begin(token) < word.last; ++token) total += posterior(log_probs[token]);
    word.time = {out.tokens[first].start_s, out.tokens[token - 1].end_s};
    word.confidence = total / static_cast<double>(token - first);
  }
  separate(out.words);
  return out;
}

}  // namespace oasr::alignment
