"""Models of transformers, made here and saved in folders, are converted where they are loaded."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from hbfp import HBFPConfig, extras  # noqa: E402

STOCHASTIC = gn.HBFPFormat(mantissa=6, rounding="stochastic")
SMALL = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "max_position_embeddings": 64}
TOKENS = torch.arange(14).view(2, 7) * 5
HERE = {"local_files_only": True}


@pytest.fixture
def folder(transformers, tmp_path):
    """A BERT with first weights, and where it lies."""
    torch.manual_seed(0)
    net = transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL)).eval()
    net.save_pretrained(tmp_path / "plain")
    return tmp_path / "plain", net


def load(transformers, folder, **options):
    return transformers.AutoModelForSequenceClassification.from_pretrained(folder, **HERE, **options)


@pytest.mark.parametrize("config", [HBFPConfig(), HBFPConfig("hbfp4", exclude="classifier"), HBFPConfig(STOCHASTIC),
                                    HBFPConfig("hbfp6", layers={"classifier": "hbfp8"}, accumulate="aligned"),
                                    HBFPConfig("mxfp4")], ids=str)
def test_what_is_loaded_is_what_convert_makes(transformers, folder, config):
    place, net = folder
    found = load(transformers, place, quantization_config=config)
    want = gn.convert(net, **config.arguments())
    assert type(found).__name__ == "BertForSequenceClassification" and found.is_quantized
    assert str(gn.report(found, TOKENS)) == str(gn.report(want, TOKENS)) and not found.training
    assert torch.equal(found(TOKENS).logits, want(TOKENS).logits)


def test_saved_and_loaded_again(transformers, folder, tmp_path):
    place, _ = folder
    first = load(transformers, place, quantization_config=HBFPConfig(STOCHASTIC, exclude=["classifier"]))
    first.save_pretrained(tmp_path / "again")
    kept = json.loads((tmp_path / "again/config.json").read_text())["quantization_config"]
    assert kept["quant_method"] == "hbfp" and HBFPConfig.from_dict(kept) == first.hf_quantizer.quantization_config
    again = load(transformers, tmp_path / "again")
    assert torch.equal(again(TOKENS).logits, first(TOKENS).logits)
    assert {name for name, _ in gn.hbfp_layers(again)} == {name for name, _ in gn.hbfp_layers(first)}
    assert gn.hbfp_layers(load(transformers, tmp_path / "again", quantization_config=None)) == []    # asked to be plain


@pytest.mark.parametrize("first", ["from transformers import AutoModel", "import hbfp.golden.nn.huggingface"])
def test_torchvision_of_another_build_is_no_matter(first, folder):
    """A process of its own: torchvision, which transformers imports, fails by itself beside torch without CUDA."""
    code = (f"{first}\nfrom hbfp import HBFPConfig\nfrom transformers import AutoModel\n"
            f"net = AutoModel.from_pretrained({str(folder[0])!r}, quantization_config=HBFPConfig('hbfp8'))\n"
            "assert 'HBFPLinear' in str(net)")
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_what_is_saved_is_plain(transformers, folder, tmp_path):
    """The files hold what they held before the conversion, whatever noise a model has."""
    place, _ = folder
    load(transformers, place, quantization_config=HBFPConfig(STOCHASTIC)).save_pretrained(tmp_path / "again")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (place / "model.safetensors").read_bytes()
    # torchvision's operators are declared as golden.vision does it.
    code = ("import sys, torch\nlibrary = torch.library.Library('torchvision', 'DEF')\n"
            "for name in ('nms', 'qnms'): library.define(name + '(Tensor a, Tensor b, float c) -> Tensor')\n"
            "import transformers\ntransformers.logging.set_verbosity_error()\n"
            f"net = transformers.AutoModel.from_pretrained({str(tmp_path / 'again')!r}, local_files_only=True)\n"
            "assert type(net.encoder.layer[0].output.dense) is transformers.models.bert.modeling_bert.nn.Linear\n"
            "assert not any(name.startswith('hbfp') for name in sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.filterwarnings("ignore")
def test_a_loaded_model_generates_and_learns(transformers, tmp_path):
    torch.manual_seed(0)
    net = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, num_key_value_heads=2))
    net.save_pretrained(tmp_path)
    found = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=HBFPConfig("hbfp6"), **HERE)
    want = gn.convert(net.eval(), "hbfp6")
    drawn = [each.generate(TOKENS, max_new_tokens=4, do_sample=False, pad_token_id=0) for each in (found, want)]
    assert torch.equal(*drawn) and drawn[0].shape == (2, 11) and gn.report(found, TOKENS).left == []
    for each in (found, want):
        each.train()(TOKENS, labels=TOKENS).loss.backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(found.parameters(), want.parameters(), strict=True))


def test_a_layer_that_cannot_be_converted_is_an_error(transformers, folder):
    with pytest.raises(ValueError, match="^Exclude must match a layer of the model, not 'head'$"):
        load(transformers, folder[0], quantization_config=HBFPConfig(exclude="head"))


def test_without_transformers_the_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "hbfp.golden.nn.huggingface", raising=False)
    with pytest.raises(ModuleNotFoundError) as error:
        assert HBFPConfig("hbfp8").quant_method
    assert str(error.value) == "transformers is missing; install it with: pip install 'hbfp[experiments]'"
