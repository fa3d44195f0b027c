#!/usr/bin/env python3
"""A native plugin: a tool that counts words, and a hook that keeps commands away from the network."""
import json, sys

def init(_plugin, _params):
    return {"version": "1.0", "hooks": ["tool.execute.before", "shell.env"], "tools": [{
        "name": "count_words", "description": "Counts the words of a text.",
        "schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]}

def hook(_plugin, params):
    name, given, output = params["hook"], params["input"], params["output"]
    if name == "tool.execute.before" and given.get("tool") == "bash" and "curl" in output["args"].get("command", ""):
        raise ValueError("no curl here; use the fetch tool")
    if name == "shell.env":
        output["env"]["COUNTED"] = "1"
        return {"output": output}
    return {}

def tool(_plugin, params):
    if not isinstance(params["args"].get("text"), str):
        return {"error": "text is missing", "kind": "arguments"}
    return {"text": f"{len(params['args']['text'].split())} words", "title": "counted"}

calls = {"init": init, "hook": hook, "tool": tool, "ping": lambda *_: {}, "events": lambda *_: {}, "dispose": lambda *_: {}}
for line in sys.stdin:
    message = json.loads(line)
    if message["do"] not in calls:
        continue  # abort and answer: this one neither waits nor asks
    try:
        result = calls[message["do"]](message.get("plugin"), message.get("params"))
        reply = result if "error" in result else {"result": result}
    except Exception as e:
        reply = {"error": str(e)}
    print(json.dumps({"id": message["id"], **reply}), flush=True)
