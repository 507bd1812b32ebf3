"""Show the repository, Colab and Binder buttons exactly when `repository: url:` in _config.yml is set.

Jupyter Book wants two settings changed together and stops where only one of them is; this makes it one. The landing page's
sentence on Colab, {{ on_colab }}, follows the same setting.
"""

ON_COLAB = "*In Colab*, run `%pip install git+{url}` first; on Binder everything is there already."


def follow_url(app, config):
    options = config.html_theme_options
    url = options.get("repository_url")
    options["use_repository_button"] = bool(url)
    config.myst_substitutions["on_colab"] = ON_COLAB.format(url=url) if url else ""
    if not url:
        options["launch_buttons"] = {}
    elif "github.com" not in url:  # Colab opens GitHub's notebooks only, and the theme warns about any other
        options["launch_buttons"].pop("colab_url", None)


def setup(app):
    app.connect("config-inited", follow_url)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
