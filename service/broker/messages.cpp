// SPDX-License-Identifier: Apache-2.0
#include "service/broker/messages.hpp"

#include "api/types/json_text.hpp"

namespace vfmgr::broker {
template <class F, Of<Greeting> V>
void fields(F& f, V& greeting) {
    f.value("protocol", greeting.protocol);
    f.value("version", greeting.version);
}

template <class F, Of<Request> V>
void fields(F& f, V& request) {
    f.value("id", request.id);
    f.value("call", request.call);
    f.maybe("pf", request.pf);
    f.defaulted("host_network", request.host_network);
    f.maybe("vm_uuid", request.vm_uuid);
    f.maybe("step", request.step);
    f.defaulted("milliseconds", request.milliseconds);
}

// A request has what its call needs, and nothing else.
void check(JsonReader& reader, Request const& request) {
    auto const only = [&](char const* key, bool given, bool taken) {
        if (given && !taken) reader.complain(key, "is not a part of this call");
    };
    auto const call = request.call;
    bool const performs = call == Call::perform;
    bool const of_pf =
        call == Call::observe || call == Call::read_firmware || call == Call::read_traffic;
    only("pf", request.pf.has_value(), of_pf && !request.host_network);
    only("host_network", request.host_network, call == Call::observe);
    only("vm_uuid", request.vm_uuid.has_value(), call == Call::observe_vms || call == Call::settle);
    only("step", request.step.has_value(), performs);
    only("milliseconds", request.milliseconds != 0, performs || call == Call::settle);
    if (request.id == 0) reader.complain("id", "must not be 0");
    if (performs && !request.step) reader.complain("step", "is missing");
    if (call == Call::settle && !request.vm_uuid) reader.complain("vm_uuid", "is missing");
    if (request.step && std::holds_alternative<AwaitVerification>(*request.step))
        reader.complain("step", "must be a step of the kernel or of a VM");
}

template <class F, Of<ObservedVms> V>
void fields(F& f, V& observed) {
    f.value("vms", observed.vms);
    f.value("vfio_variants", observed.vfio_variants);
}

template <class F, Of<Answer> V>
void fields(F& f, V& answer) {
    f.value("id", answer.id);
    f.maybe("news", answer.news);
    f.maybe("error", answer.error);
    f.maybe("view", answer.view);
    f.maybe("vms", answer.vms);
    f.defaulted("remarks", answer.remarks);
    f.maybe("counters", answer.counters);
    f.maybe("firmware", answer.firmware);
    f.maybe("traffic", answer.traffic);
    f.maybe("facts", answer.facts);
}

ObservedVms observed_vms(HypervisorView view) {
    ObservedVms observed;
    observed.vfio_variants = view.vfio_variants;
    for (auto& [uuid, vm] : view.vms) observed.vms.push_back(std::move(vm));
    return observed;
}

HypervisorView view_of(ObservedVms observed, Time at) {
    HypervisorView view;
    view.vfio_variants = observed.vfio_variants;
    view.observed_at = at;
    for (auto& vm : observed.vms) {
        auto const uuid = vm.uuid;
        view.vms.insert_or_assign(uuid, std::move(vm));
    }
    return view;
}

std::string to_line(Greeting const& greeting) {
    return line_of(greeting);
}

std::string to_line(Request const& request) {
    return line_of(request);
}

std::string to_line(Answer const& answer) {
    return line_of(answer);
}

Result<Greeting> parse_greeting(std::string_view line) {
    return from_json_text<Greeting>(line);
}

Result<Request> parse_request(std::string_view line) {
    return from_json_text<Request>(line);
}

Result<Answer> parse_answer(std::string_view line) {
    return from_json_text<Answer>(line);
}

}  // namespace vfmgr::broker
