// When each word of a transcript was said: spans of tokens in frames → words, times and confidence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace oasr::alignment {

// The pieces that a transcript is made of, one a token, one after another.
struct Transcript {
  std::vector<char32_t> text;
  std::vector<std::size_t> piece_ends;  // piece i ends before text[piece_ends[i]]; may be empty
};

// Half-open range of frames.
struct Span {
  std::int64_t start, end;
};

// From frames of one stretch of audio to seconds of the recording it was cut from.
struct Clock {
  double seconds_per_frame;
  double offset_s;    // where the stretch begins
  double duration_s;  // how long it is; no time lies outside
};

struct Interval {
  double start_s, end_s;
};

struct Word {
  std::size_t first, last;  // text[first, last)
  Interval time;
  double confidence;
};

struct Timings {
  std::vector<Word> words;
  std::vector<Interval> tokens;
  double confidence;  // 0 without tokens
};

// What a frame-synchronous decoder means by the frame at which it emitted a token: the frames since the one
// before it, this one included. Several tokens of one frame share it.
std::vector<Span> spans_of_emissions(const std::vector<std::int64_t>& frames);

// Cuts the words out of the text and times them.
//
// A word is a longest run of characters that are no white space (Python's str.isspace); of scripts that are written
// without spaces (CJK, kana, Hangul) each character is one, with the marks that combine with it, and so is
// each of their punctuation marks. A token without a piece of its own (bytes of a character that is not complete yet)
// belongs to the character that follows.
// A word lasts from the first to the last frame of the tokens it shares a character with, cut off where the
// next word begins; its confidence is the mean of their posteriors, summed in order.
//
// Whatever the spans are, starts and ends never decrease, every end is after its start by a frame (or by the whole
// stretch when that is shorter), and all times lie inside the stretch. Log-probabilities above 0 count as
// 0, NaN as minus infinity.
//
// Requires as many spans and log-probabilities as pieces, and positive seconds.
Timings time_words(const Transcript& transcript, std::vector<Span> spans, const std::vector<double>& log_probs,
                   const Clock& clock);

// Dynamic time warping (Sakoe and Chiba 1978): the frames that each token visits on the path with the largest sum of
// `scores` (tokens rows of `frames`) from the first token's first frame to the last token's last one.
//
// A step goes on by one token, one frame, or both. Of steps that are equally good the one by both is taken,
// then the one by a token. Sums are doubles. Requires tokens >= 1 and frames >= 1.
std::vector<Span> warp(const float* scores, std::int64_t tokens, std::int64_t frames);

}  // namespace oasr::alignment
