// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker_messages.hpp"

#include "api/types/json_text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t line_bytes_max = 16 << 20;  // a PF with 1,000 VFs: 0.6 MB

std::optional<KernelStep> kernel_step(Step const& step) {
    return std::visit(
        [](auto const& one) -> std::optional<KernelStep> {
            if constexpr (std::is_constructible_v<KernelStep, decltype(one)>)
                return KernelStep{one};
            else
                return std::nullopt;
        },
        step);
}

Step any_step(KernelStep const& step) {
    return std::visit([](auto const& one) { return Step{one}; }, step);
}

template <class T>
std::string line_of(T const& message) {
    std::string text;
    JsonText::append(text, message);
    return text + "\n";
}

}  // namespace

// from_json_document() finds them by their argument, so they are not in the unnamed namespace.
void append_json(std::string& text, WorkerRequest const& request) {
    JsonText writer(text);
    writer.value("id", request.id);
    if (request.step) writer.value("step", any_step(*request.step));
    writer.defaulted("firmware", request.firmware);
    writer.value("milliseconds", request.milliseconds);
}

void read(JsonReader& reader, WorkerRequest& request) {
    reader.value("id", request.id);
    std::optional<Step> step;
    reader.maybe("step", step);
    if (step) request.step = kernel_step(*step);
    if (step && !request.step) reader.complain("step", "must be a step of the kernel");
    reader.defaulted("firmware", request.firmware);
    reader.value("milliseconds", request.milliseconds);
}

void to_json(nlohmann::json& out, WorkerAnswer const& answer) {
    JsonWriter writer(out);
    writer.value("id", answer.id);
    writer.maybe("error", answer.error);
    writer.maybe("view", answer.view);
    writer.maybe("firmware", answer.firmware);
    writer.value("remarks", answer.remarks);
    writer.maybe("counters", answer.counters);
}

void read(JsonReader& reader, WorkerAnswer& answer) {
    reader.value("id", answer.id);
    reader.maybe("error", answer.error);
    reader.maybe("view", answer.view);
    reader.maybe("firmware", answer.firmware);
    reader.value("remarks", answer.remarks);
    reader.maybe("counters", answer.counters);
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
