// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker_messages.hpp"

#include "api/types/json_text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t line_bytes_max = 16 << 20;  // a PF with 1,000 VFs: 0.6 MB

template <class T>
std::string line_of(T const& message) {
    std::string text;
    JsonText::append(text, message);
    return text + "\n";
}

}  // namespace

void append_json(std::string& text, WorkerRequest const& request) {
    JsonText writer(text);
    writer.value("id", request.id);
    if (request.step) writer.value("step", Step{*request.step});
    writer.defaulted("firmware", request.firmware);
    writer.value("milliseconds", request.milliseconds);
}

template <>
void Json<WorkerRequest>::read(JsonReader& reader, WorkerRequest& request) {
    reader.value("id", request.id);
    std::optional<Step> step;
    reader.maybe("step", step);
    auto const* const kernels = step ? std::get_if<KernelStep>(&*step) : nullptr;
    if (kernels) request.step = *kernels;
    if (step && !kernels) reader.complain("step", "must be a step of the kernel");
    reader.defaulted("firmware", request.firmware);
    reader.value("milliseconds", request.milliseconds);
}

template <class F, Of<WorkerAnswer> V>
void fields(F& f, V& answer) {
    f.value("id", answer.id);
    f.maybe("error", answer.error);
    f.maybe("view", answer.view);
    f.maybe("firmware", answer.firmware);
    f.value("remarks", answer.remarks);
    f.maybe("counters", answer.counters);
}

std::string to_line(WorkerRequest const& request) {
    return line_of(request);
}

std::string to_line(WorkerAnswer const& answer) {
    return line_of(answer);
}

Result<WorkerRequest> parse_request(std::string_view line) {
    return from_json_text<WorkerRequest>(line);
}

Result<WorkerAnswer> parse_answer(std::string_view line) {
    return from_json_text<WorkerAnswer>(line);
}

bool Lines::add(std::string_view bytes) {
    bytes_ += bytes;
    return bytes_.size() <= line_bytes_max;
}

std::optional<std::string> Lines::next() {
    auto const end = bytes_.find('\n', searched_);
    searched_ = end == bytes_.npos ? bytes_.size() : 0;
    if (end == bytes_.npos) return std::nullopt;
    auto line = bytes_.substr(0, end);
    bytes_.erase(0, end + 1);
    return line;
}

}  // namespace vfmgr
