// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/check_devices.h"

#include "consensus/fabric/verbs_fence.h"

namespace crane::node {
namespace {

using consensus::verbs::Device;
using Json = nlohmann::json;

Json check(const std::string& name) {
  Json row{{"device", name}, {"driver", ""}, {"problem", ""}, {"rounds", 0}, {"late_rounds", 0}};
  const auto device = Device::open(name, "");
  if (!device) {
    row["problem"] = "it has no active port with a RoCE v2 address, or cannot be opened";
    return row;
  }
  consensus::FenceProbe probe;  // the default kind of fence: the group's file is not read
  probe.seconds_max = 3;
  const auto tested = consensus::probe_fence(device.value(), probe);
  row["driver"] = device.value().driver();
  row["fence"] = consensus::name(probe.fence);
  if (!tested) {
    row["problem"] = "the fence cannot be tested: " + tested.error().message();
    return row;
  }
  row["rounds"] = tested.value().rounds;
  row["late_rounds"] = tested.value().late;
  return row;
}

}  // namespace

Json check_devices() {
  Json all = Json::array();
  for (const std::string& name : consensus::verbs::device_names()) all.push_back(check(name));
  return all;
}

}  // namespace crane::node
